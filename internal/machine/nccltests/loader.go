package nccltests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"builder/internal/files/elf"
)

// loader is the dynamic loader's plan for a program. It comes from the program's own
// loader in the environment of the run, like the output of ldd.
type loader struct {
	collective string   // path of libnccl or librccl
	missing    []string // libraries it cannot find
	problems   []string // other errors, such as a glibc that is too old
}

var (
	resolved   = regexp.MustCompile(`^(\S+) => (/\S.*) \(0x[0-9a-f]+\)$`)
	unresolved = regexp.MustCompile(`^(\S+) => not found$`)
	complaint  = regexp.MustCompile(`: version .* not found|error while loading|cannot |symbol lookup error`)
)

// dynamic reports whether the file is a dynamically linked program. trace would run a
// script or a static program.
func dynamic(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	file, err := elf.Read(f)
	return err == nil && len(file.Needed) > 0
}

// trace runs the loader. c.env is the environment of the run.
func (c command) trace(ctx context.Context) (loader, error) {
	if !dynamic(c.path) {
		return loader{}, nil
	}
	c.env = append(slices.Clip(c.env), "LD_TRACE_LOADED_OBJECTS=1")
	c.args = nil
	end, err := c.run(ctx)
	if err != nil {
		return loader{}, err
	}
	return parseLoader(end.stdout + "\n" + end.stderr), nil
}

func parseLoader(text string) loader {
	var l loader
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := unresolved.FindStringSubmatch(line); m != nil {
			l.missing = append(l.missing, m[1])
		} else if m := resolved.FindStringSubmatch(line); m != nil {
			if strings.HasPrefix(m[1], "libnccl.so") || strings.HasPrefix(m[1], "librccl.so") {
				l.collective = m[2]
			}
		} else if complaint.MatchString(line) {
			l.problems = append(l.problems, line)
		}
	}
	return l
}

// problem returns an error if the program cannot start with the library in the directory
// library.
func (l loader) problem(library string) error {
	switch {
	case len(l.problems) > 0:
		return fmt.Errorf("the loader refuses it: %s", strings.Join(l.problems, "; "))
	case len(l.missing) > 0:
		return fmt.Errorf("the loader does not find %s: set LD_LIBRARY_PATH to its directory", strings.Join(l.missing, ", "))
	case library != "" && l.collective != "" && !within(l.collective, library):
		return fmt.Errorf("the loader takes %s, not the library in %s: a DT_RPATH of the program comes before LD_LIBRARY_PATH", l.collective, library)
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
