package nccltests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// collective matches the line of NCCL or RCCL in the plan of a dynamic loader.
var collective = regexp.MustCompile(`(?m)^\s*lib[nr]ccl\.so\S* => (/\S.*) \(0x[0-9a-f]+\)$`)

// loads returns an error if the program's own loader takes another NCCL or RCCL than that
// in the directory library. The loader prints its plan in the environment of the run, like
// ldd. A program without a loader ignores the question and prints its help.
func (c command) loads(ctx context.Context, library string) error {
	c.Env = append(slices.Clip(c.Env), "LD_TRACE_LOADED_OBJECTS=1")
	end, err := c.run(ctx)
	if err != nil {
		return err
	}
	for _, m := range collective.FindAllStringSubmatch(end.stdout+"\n"+end.stderr, -1) {
		if !within(m[1], library) {
			return fmt.Errorf("the loader takes %s, not the library in %s: a DT_RPATH of the program comes before LD_LIBRARY_PATH", m[1], library)
		}
	}
	return nil
}

// within reports whether a file is in a directory, by identity and not by path, so
// links do not matter.
func within(file, dir string) bool {
	have, err := os.Stat(filepath.Dir(file))
	if err != nil {
		return false
	}
	want, err := os.Stat(dir)
	return err == nil && os.SameFile(have, want)
}
