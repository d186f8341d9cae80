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

// vendorExports returns the table for a library.
func vendorExports(library string) string {
	if isRCCL(library) {
		return rcclExports
	}
	return ncclExports
}

func isRCCL(library string) bool { return strings.HasPrefix(path.Base(library), "librccl.so") }

// export is a function and the first and last releases of the vendor's library with it.
// last is zero if the newest release still has it.
type export struct {
	name        string
	since, last version.Version
}

func (e export) in(v version.Version) bool {
	return version.Compare(e.since, v) <= 0 && (e.last.String() == "" || version.Compare(v, e.last) <= 0)
}

// exports parses the table of functions. It also returns the releases used to make the
// table.
func exports(table string) (all []export, releases []version.Version, err error) {
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 2 || len(fields) > 3 {
			return nil, nil, fmt.Errorf("reading the table of functions: %q is not a name with one or two releases", line)
		}
		name, versions := fields[0], make([]version.Version, 2)
		for i, text := range fields[1:] {
			if versions[i], err = version.Parse(text); err != nil {
				return nil, nil, fmt.Errorf("reading the table of functions: %q: %w", line, err)
			}
		}
		if name == "release" {
			releases = append(releases, versions[0])
			continue
		}
		all = append(all, export{name, versions[0], versions[1]})
	}
	return all, releases, nil
}

// nearest returns the newest release of the table that is not newer than v.
func nearest(releases []version.Version, v version.Version) (version.Version, bool) {
	for _, r := range slices.Backward(releases) {
		if version.Compare(r, v) <= 0 {
			return r, true
		}
	}
	return version.Version{}, false
}

func checkABI(ctx context.Context, s Subject) verdict.Verdict {
	all, releases, err := exports(vendorExports(s.Expect.Library))
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	release, _, _ := strings.Cut(s.Expect.LibrarySays, "+")
	v, err := version.Parse(release)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	measured, ok := nearest(releases, v)
	if !ok {
		return verdict.Unmeasured("the table has no vendor library as old as %s", v)
	}
	have := map[string]bool{}
	err = s.withLibrary(ctx, func(r io.ReaderAt) error {
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
	return judgeExports(all, measured, have)
}

func judgeExports(all []export, measured version.Version, have map[string]bool) verdict.Verdict {
	var missing []string
	count := 0
	for _, e := range all {
		if !e.in(measured) {
			continue
		}
		if count++; !have[e.name] {
			missing = append(missing, e.name)
		}
	}
	if len(missing) > 0 {
		return verdict.Failed("%d of the %d functions of the vendor's %s are missing: %s", len(missing), count, measured, listed(missing, 40))
	}
	if count == 0 {
		return verdict.Unmeasured("the table has no function of %s", measured)
	}
	return verdict.Passed("exports all %d functions of the vendor's %s", count, measured)
}
