package gate

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/internal/plan/version"
)

var ncclABI = Gate{
	Name:   "nccl-abi",
	Asks:   "the library exports every function of the vendor's library of the same release",
	Remedy: "a function is missing: the library cannot replace the vendor's, and programs with calls to the function fail at load",
	Wants:  func(e recipe.Expect) bool { return e.Library != "" && e.LibrarySays != "" },
	check:  checkABI,
}

// ncclExports and rcclExports list the functions of the vendors' libraries and the first
// release of each, by the number of NCCL. The heads of the files describe the format.
var (
	//go:embed abi/nccl.txt
	ncclExports string
	//go:embed abi/rccl.txt
	rcclExports string
)

func isRCCL(library string) bool { return strings.HasPrefix(path.Base(library), "librccl.so") }

// exports returns the newest release of a table that is not newer than v, and its
// functions. The table names its releases first. Without such a release, there are no
// functions.
func exports(table string, v version.Version) (release version.Version, names []string, err error) {
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		since, err := version.Parse(fields[1])
		last := release
		if err == nil && len(fields) > 2 {
			last, err = version.Parse(fields[2])
		}
		if err != nil {
			return release, nil, fmt.Errorf("reading the table of functions: %q: %w", line, err)
		}
		switch {
		case fields[0] == "release":
			if version.Compare(since, v) <= 0 {
				release = since
			}
		case release.String() != "" && version.Compare(since, release) <= 0 && version.Compare(release, last) <= 0:
			names = append(names, fields[0])
		}
	}
	return release, names, nil
}

func checkABI(ctx context.Context, s Subject) verdict.Verdict {
	table := ncclExports
	if isRCCL(s.Expect.Library) {
		table = rcclExports
	}
	release, _, _ := strings.Cut(s.Expect.LibrarySays, "+")
	v, err := version.Parse(release)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	measured, names, err := exports(table, v)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	if len(names) == 0 {
		return verdict.Unmeasured("the table has no vendor library as old as %s", v)
	}
	have := map[string]bool{}
	err = s.members().read(ctx, fileNamed(s.Expect.Library), func(_ string, r io.ReaderAt) error {
		f, err := elf.Read(r)
		if err != nil {
			return err
		}
		for _, e := range f.Exported {
			have[e.Name] = true
		}
		return nil
	})
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return have[name] })
	if len(missing) > 0 {
		return verdict.Failed("%d of the %d functions of the vendor's %s are missing: %s", len(missing), len(names), measured, listed(missing, 40))
	}
	return verdict.Passed("exports all %d functions of the vendor's %s", len(names), measured)
}
