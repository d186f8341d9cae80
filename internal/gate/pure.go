package gate

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"builder/internal/elf"
	"builder/internal/recipe"
	"builder/internal/verdict"
	"builder/internal/wheel"
)

// The gates of this file read the wheel's bytes and need no container.

var wheelFormat = Gate{
	Name:   "wheel-format",
	Asks:   "tags, RECORD, metadata and paths are in order, the version is the promised one, and nothing lies outside the promised packages",
	Remedy: "the wheel was truncated, edited after the build, or made by a broken backend: build it again",
	Wants:  func(e recipe.Expect) bool { return e.Tree == "" && e.Wheelhouse == nil },
	check:  checkWheelFormat,
}

func checkWheelFormat(_ context.Context, s Subject) verdict.Verdict {
	w, err := wheel.Open(s.Artifact)
	if err != nil {
		return verdict.Failed("%v", err)
	}
	defer w.Close()
	faults := w.Check()
	for _, f := range w.Files {
		if outside(f.Name, w.DistInfo, s.Expect.Packages) {
			faults = append(faults, fmt.Sprintf("%s lies outside the promised packages %s", f.Name, strings.Join(s.Expect.Packages, ", ")))
		}
	}
	if want := s.Expect.Version; want != "" && !w.Name.HasVersion(want) {
		a := verdict.Judge(append(faults, fmt.Sprintf("the version is %s, promised is %s", w.Name.Version, want)), nil)
		return a.Because("the local part did not reach the backend: HOROVOD_LOCAL_VERSION or WHEEL_VERSION in the recipe's env")
	}
	return verdict.Judge(faults, []string{fmt.Sprintf("%s: %d files, RECORD complete", w.Name, len(w.Files))})
}

// outside reports whether a file is installed elsewhere than in the packages.
// What lies in .data goes where its second directory says (PEP 427): beside the
// packages, to the programs, or anywhere below the prefix.
func outside(name, distInfo string, packages []string) bool {
	top, rest, _ := strings.Cut(name, "/")
	if len(packages) == 0 || top == distInfo {
		return false
	}
	if top == strings.TrimSuffix(distInfo, ".dist-info")+".data" {
		scheme, below, _ := strings.Cut(rest, "/")
		switch scheme {
		case "scripts", "headers":
			return false
		case "purelib", "platlib":
			top, _, _ = strings.Cut(below, "/")
		}
	}
	return !slices.Contains(packages, top)
}

var extensionPresent = Gate{
	Name:   "extension-present",
	Asks:   "one extension for each framework asked for, none for the others",
	Remedy: "the framework was not found at build time, and the build goes on without it: set HOROVOD_WITH_<FRAMEWORK>=1 and read the configure log",
	Wants:  func(e recipe.Expect) bool { return len(e.Extensions)+len(e.NoExtensions) > 0 },
	check:  checkExtensions,
}

func checkExtensions(_ context.Context, s Subject) verdict.Verdict {
	w, err := wheel.Open(s.Artifact)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	defer w.Close()
	var faults, seen []string
	unasked := 0
	for _, pattern := range s.Expect.Extensions {
		found := match(w, pattern)
		if len(found) != 1 {
			faults = append(faults, fmt.Sprintf("%d files match %s, 1 is promised %v", len(found), pattern, found))
			continue
		}
		seen = append(seen, found[0])
	}
	for _, pattern := range s.Expect.NoExtensions {
		if found := match(w, pattern); len(found) > 0 {
			faults = append(faults, fmt.Sprintf("%s was not asked for", strings.Join(found, ", ")))
			unasked++
			continue
		}
		seen = append(seen, "no "+pattern)
	}
	a := verdict.Judge(faults, seen)
	if unasked > 0 && unasked == len(faults) {
		return a.Because("another framework was found at build time too: set HOROVOD_WITHOUT_<FRAMEWORK>=1 for what is not asked for")
	}
	return a
}

// match returns the names of the wheel's files that match the pattern.
func match(w *wheel.Wheel, pattern string) []string {
	var found []string
	for _, f := range w.Files {
		if ok, err := path.Match(pattern, f.Name); err == nil && ok {
			found = append(found, f.Name)
		}
	}
	return found
}

var deviceCode = Gate{
	Name:   "device-code",
	Asks:   "the GPU targets inside are those asked for",
	Remedy: "the compiler chose its own targets: HCC_AMDGPU_TARGET (ROCm) or the compute capability list (CUDA) did not reach it",
	Wants:  func(e recipe.Expect) bool { return len(e.DeviceCode) > 0 },
	check:  checkDeviceCode,
}

func checkDeviceCode(_ context.Context, s Subject) verdict.Verdict {
	want := slices.Sorted(slices.Values(s.Expect.DeviceCode))
	return eachExtension(s, func(name string, r wheel.Member) (faults, seen []string, err error) {
		targets, err := elf.DeviceTargets(r)
		if err != nil {
			return nil, nil, err
		}
		var have []string
		for _, t := range targets {
			have = append(have, t.String())
		}
		slices.Sort(have)
		if !slices.Equal(have, want) {
			return []string{fmt.Sprintf("%s holds code for %v, promised is %v", name, have, want)}, nil, nil
		}
		return nil, []string{fmt.Sprintf("%s holds code for %s", name, strings.Join(have, ", "))}, nil
	})
}

// question is what a gate asks of one library of the wheel.
type question func(name string, r wheel.Member) (faults, seen []string, err error)

// eachExtension asks one question of every promised extension.
func eachExtension(s Subject, ask question) verdict.Verdict {
	w, err := wheel.Open(s.Artifact)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	defer w.Close()
	names, err := promised(w, s.Expect.Extensions)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	return s.each(w, names, ask)
}

// promised lists the files that match the patterns. A pattern without a file is
// an error: who asks of the others alone has not looked at all that was promised.
func promised(w *wheel.Wheel, patterns []string) ([]string, error) {
	var names []string
	for _, pattern := range patterns {
		found := match(w, pattern)
		if len(found) == 0 {
			return nil, fmt.Errorf("no file matches %s, see extension-present", pattern)
		}
		names = append(names, found...)
	}
	return names, nil
}

// each asks one question of these files.
func (s Subject) each(w *wheel.Wheel, names []string, ask question) verdict.Verdict {
	var faults, seen []string
	for _, name := range names {
		err := s.Unpacked.read(w, name, func(r wheel.Member) error {
			bad, good, err := ask(name, r)
			faults, seen = append(faults, bad...), append(seen, good...)
			return err
		})
		if err != nil {
			return verdict.Unmeasured("reading %s: %v", name, err)
		}
	}
	return verdict.Judge(faults, seen)
}
