package gate

import (
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/files/inspect"
	"builder/internal/files/wheel"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var wheelFormat = Gate{
	Name:   "wheel-format",
	Asks:   "tags, RECORD, metadata and paths are valid, the version is the promised one, no file lies outside the promised packages, and every library fits the tag and its directory",
	Remedy: "if a library does not fit the tag, give the wheel the tag of what it fits (--plat-name, --python-tag, auditwheel repair); otherwise the wheel was truncated, edited after the build, or made by a broken backend: build it again",
	Wants:  func(e recipe.Expect) bool { return e.Tree == "" },
	check:  checkWheelFormat,
}

func checkWheelFormat(ctx context.Context, s Subject) verdict.Verdict {
	w, err := wheel.Open(s.Artifact)
	if err != nil {
		v := verdict.Failed("%v", err)
		if _, err := wheel.ParseName(filepath.Base(s.Artifact)); err != nil {
			return v.Because("give the wheel the name that its project gave it: installers read the tags in it")
		}
		return v
	}
	defer w.Close()
	misplaced, wrong := placeFaults(w, s.Expect.Packages), slices.Concat(w.Check(), libraryFaults(ctx, s.Unpacked, w, s.Expect))
	problems := slices.Concat(wrong, misplaced)
	if want := s.Expect.Version; want != "" && !w.Name.HasVersion(want) {
		a := verdict.Judge(append(problems, fmt.Sprintf("the version is %s, expected %s", w.Name.Version, want)), nil)
		return a.Because("the version of the wheel is not the promised one: make the build write the promised version (Horovod reads HOROVOD_LOCAL_VERSION), or correct expect.version")
	}
	v := verdict.Judge(problems, []string{fmt.Sprintf("%s: %d files, RECORD complete", w.Name, len(w.Files))})
	// The hint never says how to allow the file: whoever reads it may hold a bad wheel.
	if len(wrong) == 0 && len(misplaced) > 0 {
		return v.Because("it installs into directories of others, or runs by itself: do not install it. What a wheel may install stands in docs/gates.md")
	}
	return v
}

// placeFaults names the files installed outside the promised packages. If no packages
// are promised, only the package of the wheel's name is allowed. Other files may shadow
// those of other wheels, or run at every start of Python.
func placeFaults(w *wheel.Wheel, packages []string) (problems []string) {
	promised := func(name string) bool { return slices.Contains(packages, name) }
	says := "lies outside the promised packages " + strings.Join(packages, ", ")
	if !slices.ContainsFunc(packages, func(name string) bool { return !strings.Contains(name, "/") }) {
		promised = func(name string) bool { return wheel.Owns(w.Name.Distribution, name) }
		says = "lies outside the package of the wheel's name, without a promise"
	}
	places := w.Installs()
	for _, name := range places.Packages {
		if !promised(name) {
			problems = append(problems, fmt.Sprintf("%s %s", firstBelow(w, name), says))
		}
	}
	for _, name := range places.Programs {
		if ofSystem(name, w.Name.Distribution) && !slices.Contains(packages, "scripts/"+name) {
			problems = append(problems, fmt.Sprintf("the program %s would hide the system's, without a promise", name))
		}
	}
	for _, dir := range places.Data {
		top, _, _ := strings.Cut(dir, "/")
		if !slices.Contains(documents, dir) && !slices.Contains(packages, "data/"+dir) && !slices.Contains(packages, "data/"+top) {
			problems = append(problems, fmt.Sprintf("the wheel installs %s below the prefix, without a promise", dir))
		}
	}
	return problems
}

// documents lists directories below the prefix from which nothing is executed.
var documents = []string{"share/man", "share/doc", "share/licenses", "share/locale"}

// systemPrograms matches names of well-known programs: interpreters, shells,
// installers, compilers, launchers and common tools of scripts, with an optional
// number.
var systemPrograms = regexp.MustCompile(`^(python|pypy|pip|pipx|easy_install|uv|uvx|conda|mamba|(ba|da|z|k|c|tc|fi|pw|a)?sh|activate.*|Activate\..*|` +
	`perl|ruby|node|npm|npx|lua|php|java|go|cargo|rustc|gcc|g\+\+|cc|c\+\+|cpp|clang|clang\+\+|ld|as|ar|nm|strip|objdump|make|cmake|ninja|nvcc|hipcc|ldconfig|` +
	`mpirun|mpiexec|orterun|srun|sbatch|docker|podman|kubectl|git|svn|ssh|scp|sftp|rsync|curl|wget|gpg|openssl|sudo|su|doas|env|which|time|nice|nohup|timeout|` +
	`ls|cat|cp|mv|rm|ln|mkdir|rmdir|touch|chmod|chown|chroot|mount|umount|dd|df|du|echo|printf|test|true|false|expr|date|sleep|kill|ps|top|id|whoami|login|passwd|hostname|uname|` +
	`grep|egrep|fgrep|sed|awk|find|xargs|sort|uniq|head|tail|tee|cut|tr|wc|diff|patch|tar|gzip|gunzip|zcat|bzip2|xz|zip|unzip|vi|vim|nano|less|more|man|apt|apt-get|dpkg|yum|dnf|rpm|apk|systemctl|crontab|` +
	`nvidia-smi|rocm-smi|amd-smi|rocminfo)(-?\d[\d.]*)?(-config)?$`)

// ofSystem reports whether a program has the name of a system program other than the
// wheel's own.
func ofSystem(name, distribution string) bool {
	m := systemPrograms.FindStringSubmatch(name)
	return m != nil && wheel.NormalName(m[1]) != wheel.NormalName(distribution)
}

// firstBelow returns the first file installed as or below a top-level name.
func firstBelow(w *wheel.Wheel, top string) string {
	for _, f := range w.Files {
		_, moved, ok := strings.Cut(f.Name, "lib/") // in .data/purelib and .data/platlib
		if strings.HasPrefix(f.Name+"/", top+"/") || ok && strings.HasPrefix(moved+"/", top+"/") {
			return f.Name
		}
	}
	return top
}

// libraryFaults compares every library and every program of the wheel with the wheel's
// tags, because installers go by the tags alone, and with its path in the wheel.
func libraryFaults(ctx context.Context, unpacked *Unpacked, w *wheel.Wheel, e recipe.Expect) (problems []string) {
	for _, f := range w.Files {
		isLibrary := wheel.IsLibrary(f.Name)
		if !isLibrary && f.Mode&0o111 == 0 {
			continue
		}
		err := unpacked.read(ctx, w, f.Name, func(r io.ReaderAt) error {
			native, problem := nativeFault(r, w.Name)
			all := []string{problem}
			if problem == "" && native && isLibrary {
				found, err := elf.Read(r)
				if err != nil {
					return fmt.Errorf("cannot be read as a library: %w", err)
				}
				all = []string{libcFault(found.Needed, w.Name), suffixFault(f.Name, w.Name), tagFault(f.Name, w, e.Extensions), inspect.Misplaced(f.Name, found)}
				if e.Glibc == "" { // otherwise glibc-floor asks
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
