package pypi

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"builder/internal/files/wheel"
)

// target is a CPython on a glibc Linux.
type target struct {
	minor int // of Python 3
	arch  string
	glibc int // minor of glibc 2
}

var (
	pythonPattern   = regexp.MustCompile(`^3\.([1-9]?[0-9])$`)
	platformPattern = regexp.MustCompile(`^(x86_64|aarch64)-(manylinux(?:_2_[1-9]?[0-9]|2014))$`)
	interpreterTag  = regexp.MustCompile(`^(cp|py)3([1-9]?[0-9])?$`)
)

func newTarget(python, platform string) (target, error) {
	version := pythonPattern.FindStringSubmatch(python)
	if version == nil {
		return target{}, fmt.Errorf("%q is not a Python version such as 3.11", python)
	}
	parts := platformPattern.FindStringSubmatch(platform)
	if parts == nil {
		return target{}, fmt.Errorf("%q is not a platform such as x86_64-manylinux_2_28", platform)
	}
	minor, _ := strconv.Atoi(version[1])
	glibc, arch := glibcOf(parts[2] + "_" + parts[1])
	return target{minor, arch, glibc}, nil
}

// rank orders the tags that fit, the higher the better: first what was built for
// this very Python, then the stable ABI, then what needs no ABI, then what runs
// anywhere; of these the newest Python; of these the newest glibc.
type rank struct{ abi, minor, glibc int }

func (r rank) compare(o rank) int {
	return cmp.Or(cmp.Compare(r.abi, o.abi), cmp.Compare(r.minor, o.minor), cmp.Compare(r.glibc, o.glibc))
}

// rank returns how well a tag such as cp311-abi3-manylinux_2_17_x86_64 fits.
func (t target) rank(tag string) (rank, bool) {
	parts := strings.Split(tag, "-")
	if len(parts) != 3 {
		return rank{}, false
	}
	glibc, ok := t.platform(parts[2])
	interpreter := interpreterTag.FindStringSubmatch(parts[0])
	if !ok || interpreter == nil {
		return rank{}, false
	}
	minor, _ := strconv.Atoi(interpreter[2]) // none in py3: 0
	cpython := interpreter[1] == "cp"
	own := cpython && minor == t.minor && interpreter[2] != ""
	switch abi := parts[1]; {
	case own && abi == parts[0]:
		return rank{3, minor, glibc}, true
	case cpython && abi == "abi3" && minor <= t.minor:
		return rank{2, minor, glibc}, true
	case abi == "none" && (own || !cpython && minor <= t.minor):
		if own {
			minor++ // cp311 before py311
		}
		return rank{min(1, glibc+1), minor, glibc}, true
	}
	return rank{}, false
}

// platform returns the glibc that a platform tag is for; those without one come
// last.
func (t target) platform(tag string) (glibc int, ok bool) {
	switch tag {
	case "any":
		return -1, true
	case "linux_" + t.arch:
		return 0, true
	}
	glibc, arch := glibcOf(tag)
	return glibc, arch == t.arch && glibc <= t.glibc
}

// glibcOf returns the minor of glibc 2 that a platform tag is for, and its machine,
// "" for a tag without one.
func glibcOf(tag string) (minor int, arch string) {
	version, arch := wheel.Glibc(tag)
	text, _ := strings.CutPrefix(version, "2.")
	minor, err := strconv.Atoi(text)
	if err != nil {
		return 0, ""
	}
	return minor, arch
}

// wheelRank returns the best rank of the tags that a wheel's name stands for.
func (t target) wheelRank(filename string) (best rank, build string, ok bool) {
	name, err := wheel.ParseName(filename)
	if err != nil {
		return rank{}, "", false
	}
	for _, tag := range name.Tags() {
		if r, fits := t.rank(tag); fits && (!ok || r.compare(best) > 0) {
			best, ok = r, true
		}
	}
	return best, name.Build, ok
}

// best returns the wheel of a release that fits best. The order is total, so the
// choice does not depend on that of the index.
func (t target) best(p release) (found, error) {
	type candidate struct {
		found
		rank
		build int
	}
	var all []candidate
	for _, f := range p.files {
		if r, build, ok := t.wheelRank(f.Filename); ok {
			all = append(all, candidate{f, r, buildNumber(build)})
		}
	}
	if len(all) == 0 {
		return found{}, fmt.Errorf("%s %s has no wheel for CPython 3.%d on %s with glibc 2.%d", p.project, p.version, t.minor, t.arch, t.glibc)
	}
	return slices.MaxFunc(all, func(a, b candidate) int {
		return cmp.Or(a.rank.compare(b.rank), cmp.Compare(a.build, b.build), cmp.Compare(a.Filename, b.Filename))
	}).found, nil
}

// buildNumber reads the digits that a build tag begins with.
func buildNumber(tag string) int {
	end := strings.IndexFunc(tag, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(tag)
	}
	n, _ := strconv.Atoi(tag[:end])
	return n
}
