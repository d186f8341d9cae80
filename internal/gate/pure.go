package gate

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"builder/internal/elf"
	"builder/internal/recipe"
	"builder/internal/wheel"
)

// The gates of this file read the wheel's bytes and need no container.

var wheelFormat = Gate{
	Name:   "wheel-format",
	Asks:   "tags, RECORD, metadata and paths are in order, and nothing lies outside the promised packages",
	Remedy: "the wheel was truncated, edited after the build, or made by a broken backend: build it again",
	Wants:  func(recipe.Expect) bool { return true },
	check:  checkWheelFormat,
}

func checkWheelFormat(_ context.Context, s Subject) answer {
	w, err := wheel.Open(s.Wheel)
	if err != nil {
		return failed("%v", err)
	}
	defer w.Close()
	faults := w.Check()
	for _, f := range w.Files {
		if outside(f.Name, w.DistInfo, s.Expect.Packages) {
			faults = append(faults, fmt.Sprintf("%s lies outside the promised packages %s", f.Name, strings.Join(s.Expect.Packages, ", ")))
		}
	}
	return judge(faults, []string{fmt.Sprintf("%s: %d files, RECORD complete", w.Name, len(w.Files))})
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

func checkExtensions(_ context.Context, s Subject) answer {
	w, err := wheel.Open(s.Wheel)
	if err != nil {
		return unmeasured("%v", err)
	}
	defer w.Close()
	var faults, seen []string
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
			continue
		}
		seen = append(seen, "no "+pattern)
	}
	return judge(faults, seen)
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

var elfNeeded = Gate{
	Name:   "elf-needed",
	Asks:   "the extensions need the promised libraries, no forbidden ones, and no path of the build machine",
	Remedy: "the linker was given other libraries than the recipe promises: read the link lines in the build log",
	Wants:  func(e recipe.Expect) bool { return len(e.Needed)+len(e.Forbidden) > 0 },
	check:  checkNeeded,
}

func checkNeeded(_ context.Context, s Subject) answer {
	return eachExtension(s, func(name string, r wheel.Member) (faults, seen []string, err error) {
		f, err := elf.Read(r)
		if err != nil {
			return nil, nil, err
		}
		for _, pattern := range s.Expect.Needed {
			if !anyMatch(pattern, f.Needed) {
				faults = append(faults, fmt.Sprintf("%s does not need %s; it needs %s", name, pattern, strings.Join(f.Needed, " ")))
			}
		}
		for _, pattern := range s.Expect.Forbidden {
			if anyMatch(pattern, f.Needed) {
				faults = append(faults, fmt.Sprintf("%s needs %s, which is forbidden", name, pattern))
			}
		}
		for _, dir := range slices.Concat(f.Rpath, f.Runpath) {
			if !systemPath(dir) {
				faults = append(faults, fmt.Sprintf("%s looks for libraries in %s, a directory of the build machine", name, dir))
			}
		}
		return faults, []string{name + " needs " + strings.Join(f.Needed, " ")}, nil
	})
}

func anyMatch(pattern string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		ok, err := path.Match(pattern, n)
		return err == nil && ok
	})
}

// systemPath reports whether a run-time search directory means the same on
// every host: relative to the library, or a directory of the distribution.
func systemPath(dir string) bool {
	if strings.HasPrefix(dir, "$ORIGIN") {
		return true
	}
	clean := path.Clean(dir)
	for _, root := range []string{"/usr/lib", "/usr/lib64", "/lib", "/lib64", "/opt/rocm", "/usr/local/cuda"} {
		if clean == root || strings.HasPrefix(clean, root+"/") {
			return !strings.Contains(clean, "site-packages") && !strings.Contains(clean, "dist-packages")
		}
	}
	return false
}

var deviceCode = Gate{
	Name:   "device-code",
	Asks:   "the GPU targets inside are those asked for",
	Remedy: "the compiler chose its own targets: HCC_AMDGPU_TARGET (ROCm) or the compute capability list (CUDA) did not reach it",
	Wants:  func(e recipe.Expect) bool { return len(e.DeviceCode) > 0 },
	check:  checkDeviceCode,
}

func checkDeviceCode(_ context.Context, s Subject) answer {
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

// eachExtension asks one question of every promised extension.
func eachExtension(s Subject, ask func(name string, r wheel.Member) (faults, seen []string, err error)) answer {
	w, err := wheel.Open(s.Wheel)
	if err != nil {
		return unmeasured("%v", err)
	}
	defer w.Close()
	var faults, seen []string
	for _, pattern := range s.Expect.Extensions {
		for _, name := range match(w, pattern) {
			f, s, err := askMember(w, name, ask)
			if err != nil {
				return unmeasured("reading %s: %v", name, err)
			}
			faults, seen = append(faults, f...), append(seen, s...)
		}
	}
	if len(seen)+len(faults) == 0 {
		return unmeasured("no file matches %s", strings.Join(s.Expect.Extensions, ", ")).
			because("see extension-present: the extension that was promised is not in the wheel")
	}
	return judge(faults, seen)
}

func askMember(w *wheel.Wheel, name string, ask func(string, wheel.Member) ([]string, []string, error)) (faults, seen []string, err error) {
	r, err := w.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	return ask(name, r)
}
