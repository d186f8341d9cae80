package gate

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/files/inspect"
	"builder/internal/files/wheel"
)

// libraryFaults compares every library and every program of the wheel with its tags,
// which is all that installers go by, and with the place that it lies in.
func (s Subject) libraryFaults(ctx context.Context, w *wheel.Wheel) (faults []string) {
	for _, f := range w.Files {
		isLibrary := wheel.IsLibrary(f.Name)
		if !isLibrary && f.Mode&0o111 == 0 {
			continue
		}
		err := s.Unpacked.read(ctx, w, f.Name, func(r io.ReaderAt) error {
			native, fault := nativeFault(r, w.Name)
			if !native || fault == "" && !isLibrary {
				return nil
			}
			if fault != "" {
				faults = append(faults, fmt.Sprintf("%.300s %s", f.Name, fault))
				return nil
			}
			found, err := elf.Read(r)
			if err != nil {
				return fmt.Errorf("cannot be read as a library: %w", err)
			}
			for _, fault := range []string{libcFault(found.Needed, w.Name), suffixFault(f.Name, w.Name), inspect.Misplaced(f.Name, found)} {
				if fault != "" {
					faults = append(faults, fmt.Sprintf("%.300s %s", f.Name, fault))
				}
			}
			return nil
		})
		if err != nil {
			faults = append(faults, fmt.Sprintf("%.300s: %v", f.Name, err))
		}
	}
	return faults
}

// machines are the processors of platform tags, as the headers of files have them.
var machines = map[string]string{
	"x86_64": "x86_64", "i686": "386", "aarch64": "aarch64", "armv6l": "arm", "armv7l": "arm",
	"ppc64le": "ppc64", "s390x": "s390", "riscv64": "riscv", "loongarch64": "loongarch",
}

// nativeFault reads the first bytes of a file: whether a system loads or runs it,
// and why one with the wheel's tags does not. Code of GPUs is in the same format,
// and is a program for no system.
func nativeFault(r io.ReaderAt, name wheel.Name) (native bool, fault string) {
	h, ok := elf.ReadHeader(r)
	switch {
	case !ok || h.Machine == "cuda" || h.Machine == "amdgpu":
		return false, ""
	case h.System != "":
		return true, fmt.Sprintf("is for the system %s, not for Linux", h.System)
	}
	for platform := range strings.SplitSeq(name.Platform, ".") {
		if machines[processor(platform)] != h.Machine {
			return true, fmt.Sprintf("is for %s, the tag is %s-%s-%s", h.Machine, name.Python, name.ABI, platform)
		}
	}
	return true, ""
}

var platformPattern = regexp.MustCompile(`^(?:linux|manylinux(?:1|2010|2014|_\d+_\d+)|musllinux_\d+_\d+)_(\w+)$`)

// processor is the end of a platform tag of Linux, "" of another.
func processor(platform string) string {
	if m := platformPattern.FindStringSubmatch(platform); m != nil {
		return m[1]
	}
	return ""
}

// libcFault compares the C library that a library needs with the tags: linux and
// manylinux are taken where there is glibc, musllinux where there is musl.
func libcFault(needed []string, name wheel.Name) string {
	for platform := range strings.SplitSeq(name.Platform, ".") {
		musl := strings.HasPrefix(platform, "musllinux")
		for _, soname := range needed {
			if strings.HasPrefix(soname, "libc.musl-") && !musl || soname == "libc.so.6" && musl {
				return fmt.Sprintf("needs %s, the tag is %s", soname, platform)
			}
		}
	}
	return ""
}

var suffixPattern = regexp.MustCompile(`\.cpython-(\d+)[a-z]*-(x86_64|aarch64)-linux-(gnu|musl)\w*\.so$`)

// suffixFault compares the end of an extension's name, which Python imports by,
// with the tags: an extension of another Python is not found.
func suffixFault(file string, name wheel.Name) string {
	m := suffixPattern.FindStringSubmatch(file)
	if m == nil {
		return ""
	}
	pythons := strings.Split(name.Python, ".")
	if strings.HasPrefix(name.ABI, "cp") && !slices.Contains(pythons, "cp"+m[1]) {
		return fmt.Sprintf("is named for CPython %s, the tag is %s", m[1], name.Python)
	}
	for platform := range strings.SplitSeq(name.Platform, ".") {
		if strings.HasPrefix(platform, "musllinux") != (m[3] == "musl") || processor(platform) != m[2] {
			return fmt.Sprintf("is named for %s and %s, the tag is %s", m[2], m[3], platform)
		}
	}
	return ""
}
