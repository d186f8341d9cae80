package gate

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

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
	misplaced, wrong := placeFaults(w, s.Expect.Packages), slices.Concat(w.Check(), s.libraryFaults(ctx, w))
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
