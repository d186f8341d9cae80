package gate

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/files/linux"
	"builder/internal/files/wheel"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var glibcFloor = Gate{
	Name:   "glibc-floor",
	Asks:   "the newest symbols of glibc, libstdc++ and libgcc required by the libraries are those of systems with the promised glibc and the platform tag",
	Remedy: "build on an older distribution or with an older g++, or promise the newer glibc: with too low a tag, pip installs libraries that cannot be loaded",
	Wants:  func(e recipe.Expect) bool { return e.Glibc != "" },
	check:  checkGlibc,
}

func checkGlibc(ctx context.Context, s Subject) verdict.Verdict {
	of, err := wheel.ParseName(filepath.Base(s.Artifact))
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	return s.members().each(ctx, filesLike(s.Expect.Extensions), func(name string, r io.ReaderAt) (problems, seen []string, err error) {
		f, err := elf.Read(r)
		if err != nil {
			return nil, nil, err
		}
		floor := f.Floors["GLIBC"]
		if floor == "" {
			if other := ofAnotherLibc(f); len(other) > 0 {
				return nil, nil, fmt.Errorf("it requires no versioned symbol of glibc, and not libc.so.6, but %s: it may be a library for another C library; for a system with glibc, link it with -lc", listed(other, 5))
			}
			// An extension that calls only Python's API loads with every glibc.
			seen = []string{name + " requires no versioned symbol of glibc"}
		}
		requires := func(symbols []string) string { return name + " requires " + strings.Join(symbols, ", ") }
		if newer := linux.Beyond(f.Floors, s.Expect.Glibc); len(newer) > 0 {
			problem := fmt.Sprintf("%s, expected at most the symbols of systems with glibc %s", requires(newer), s.Expect.Glibc)
			if oldest := linux.Oldest(f.Floors); oldest != "" {
				problem += "; systems with glibc " + oldest + " have them"
			}
			problems = append(problems, problem)
		}
		for _, tag := range of.Tags() {
			if strings.Contains(tag, "-musllinux_") {
				problems = append(problems, fmt.Sprintf("%s requires GLIBC_%s, and the tag %s promises musl", name, floor, tag))
			}
		}
		for _, problem := range aboveTags(f.Floors, of) {
			problems = append(problems, name+" "+problem)
		}
		if all := linux.Required(f.Floors); len(all) > 0 {
			seen = append(seen, requires(all))
		}
		return problems, seen, nil
	})
}

// aboveTags returns the problems of a library that requires newer symbols than the systems
// have on which installers put a wheel with these tags.
func aboveTags(floors map[string]string, of wheel.Name) (problems []string) {
	for _, tag := range of.Tags() {
		says, _ := wheel.Glibc(tag[strings.LastIndex(tag, "-")+1:])
		if says == "" {
			continue
		}
		if newer := linux.Beyond(floors, says); len(newer) > 0 {
			problems = append(problems, fmt.Sprintf("requires %s, and the tag %s promises glibc %s", strings.Join(newer, ", "), tag, says))
		}
	}
	return problems
}

// ofAnotherLibc lists what a library without a versioned symbol of glibc may require of
// another C library: such a library itself, or symbols without a version that are not
// Python's. It is empty if the library needs libc.so.6.
func ofAnotherLibc(f *elf.File) (other []string) {
	if slices.Contains(f.Needed, "libc.so.6") {
		return nil
	}
	for _, name := range f.Needed {
		if strings.HasPrefix(name, "libc.") {
			other = append(other, name)
		}
	}
	for _, u := range f.Undefined {
		if !u.Weak && u.Version == "" && !strings.HasPrefix(u.Name, "Py") && !strings.HasPrefix(u.Name, "_Py") {
			other = append(other, u.Name)
		}
	}
	return other
}
