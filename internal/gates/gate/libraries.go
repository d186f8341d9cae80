package gate

import (
	"context"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/files/inspect"
	"builder/internal/files/wheel"
)

// libraryFaults compares every library and every program of the wheel with the wheel's
// tags, because installers go by the tags alone, and with its path in the wheel.
func (s Subject) libraryFaults(ctx context.Context, w *wheel.Wheel) (problems []string) {
	for _, f := range w.Files {
		isLibrary := wheel.IsLibrary(f.Name)
		if !isLibrary && f.Mode&0o111 == 0 {
			continue
		}
		err := s.Unpacked.read(ctx, w, f.Name, func(r io.ReaderAt) error {
			native, problem := nativeFault(r, w.Name)
			all := []string{problem}
			if problem == "" && native && isLibrary {
				found, err := elf.Read(r)
				if err != nil {
					return fmt.Errorf("cannot be read as a library: %w", err)
				}
				all = []string{libcFault(found.Needed, w.Name), suffixFault(f.Name, w.Name), tagFault(f.Name, w, s.Expect.Extensions), inspect.Misplaced(f.Name, found)}
				if s.Expect.Glibc == "" { // otherwise glibc-floor asks
					all = append(all, aboveTags(found.Floors, w.Name)...)
				}
			}
			for _, problem := range all {
				if problem != "" {
					problems = append(problems, fmt.Sprintf("%.300s %s", f.Name, problem))
				}
			}
			return nil
		})
		if err != nil {
			problems = append(problems, fmt.Sprintf("%.300s: %v", f.Name, err))
		}
	}
	return problems
}

// machines maps the processors of platform tags to the names in ELF headers.
var machines = map[string]string{
	"x86_64": "x86_64", "i686": "386", "aarch64": "aarch64", "armv6l": "arm", "armv7l": "arm",
	"ppc64le": "ppc64", "s390x": "s390", "riscv64": "riscv", "loongarch64": "loongarch",
}

// nativeFault reads the header of a file. It reports whether a system loads or runs the
// file, and why the system of the wheel's tags does not. GPU code has the same format
// but runs on no system.
func nativeFault(r io.ReaderAt, name wheel.Name) (native bool, problem string) {
	h, ok := elf.ReadHeader(r)
	switch {
	case !ok || h.Machine == "cuda" || h.Machine == "amdgpu":
		return false, ""
	case h.Machine == "none":
		return true, "is damaged: its ELF header names no machine"
	case h.System != "":
		return true, fmt.Sprintf("is for the system %s, not for Linux", h.System)
	}
	for platform := range strings.SplitSeq(name.Platform, ".") {
		if machines[processor(platform)] != h.Machine {
			return true, fmt.Sprintf("is for %s, and the tag is %s-%s-%s", h.Machine, name.Python, name.ABI, platform)
		}
	}
	return true, ""
}

var platformPattern = regexp.MustCompile(`^(?:linux|manylinux(?:1|2010|2014|_\d+_\d+)|musllinux_\d+_\d+)_(\w+)$`)

// processor returns the processor of a Linux platform tag, or "".
func processor(platform string) string {
	if m := platformPattern.FindStringSubmatch(platform); m != nil {
		return m[1]
	}
	return ""
}

// libcFault compares the C library needed by a library with the tags. Installers take
// linux and manylinux on systems with glibc, musllinux on systems with musl.
func libcFault(needed []string, name wheel.Name) string {
	for platform := range strings.SplitSeq(name.Platform, ".") {
		musl := strings.HasPrefix(platform, "musllinux")
		for _, soname := range needed {
			if strings.HasPrefix(soname, "libc.musl-") && !musl || soname == "libc.so.6" && musl {
				return fmt.Sprintf("needs %s, and the tag is %s", soname, platform)
			}
		}
	}
	return ""
}

var suffixPattern = regexp.MustCompile(`\.cpython-(\d+)[a-z]*-(x86_64|aarch64)-linux-(gnu|musl)\w*\.so$`)

// suffixFault compares the suffix of an extension's name with the tags. Python finds an
// extension only by its own suffix.
func suffixFault(file string, name wheel.Name) string {
	m := suffixPattern.FindStringSubmatch(file)
	if m == nil {
		return ""
	}
	pythons := strings.Split(name.Python, ".")
	if strings.HasPrefix(name.ABI, "cp") && !slices.Contains(pythons, "cp"+m[1]) {
		return fmt.Sprintf("is named for CPython %s, and the tag is %s", m[1], name.Python)
	}
	for platform := range strings.SplitSeq(name.Platform, ".") {
		if strings.HasPrefix(platform, "musllinux") != (m[3] == "musl") || processor(platform) != m[2] {
			return fmt.Sprintf("is named for %s and %s, and the tag is %s", m[2], m[3], platform)
		}
	}
	return ""
}

// tagFault returns the problem of a promised extension that its name reserves for one
// CPython, while installers take the wheel for others too: those that the tag names, or
// with the ABI abi3 all later ones. A wheel may hold the extension once for each Python.
func tagFault(file string, w *wheel.Wheel, promised []string) string {
	m := suffixPattern.FindStringSubmatch(file)
	if m == nil || strings.HasPrefix(w.Name.ABI, "cp") || w.Name.ABI == "none" && w.Name.Python == "cp"+m[1] || !matches(promised, file) {
		return ""
	}
	module := func(file string) string { return file[:strings.IndexByte(file+".", '.')] }
	if slices.ContainsFunc(w.Files, func(f wheel.File) bool {
		return f.Name != file && path.Ext(f.Name) == ".so" && module(f.Name) == module(file)
	}) {
		return ""
	}
	return fmt.Sprintf("is named for CPython %s alone, and the tag %s-%s is for others too", m[1], w.Name.Python, w.Name.ABI)
}
