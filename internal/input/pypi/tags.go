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

// target is a CPython on Linux with glibc.
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

// rank orders matching tags; a higher rank is better. The ABI decides first: built for
// this Python, then the stable ABI, then no ABI, then any platform. A newer Python
// decides next, and a newer glibc last.
type rank struct{ abi, minor, glibc int }

func (r rank) compare(o rank) int {
	return cmp.Or(cmp.Compare(r.abi, o.abi), cmp.Compare(r.minor, o.minor), cmp.Compare(r.glibc, o.glibc))
}

// rank returns the rank of a tag such as cp311-abi3-manylinux_2_17_x86_64, and whether
// it matches.
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
	minor, _ := strconv.Atoi(interpreter[2]) // 0 for py3
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

// platform returns the minor version of glibc 2 in a platform tag, and whether the tag
// matches. Tags without a version rank last.
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

// glibcOf returns the minor version of glibc 2 and the machine in a platform tag. The
// machine is "" for a tag without a version.
func glibcOf(tag string) (minor int, arch string) {
	version, arch := wheel.Glibc(tag)
	text, _ := strings.CutPrefix(version, "2.")
	minor, err := strconv.Atoi(text)
	if err != nil {
		return 0, ""
	}
	return minor, arch
}

// wheelRank returns the best rank among the tags in a wheel's name.
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

// best returns the best matching wheel of a release. The order is total, so the choice
// does not depend on the order of the index.
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

// buildNumber returns the leading digits of a build tag as a number.
func buildNumber(tag string) int {
	end := strings.IndexFunc(tag, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(tag)
	}
	n, _ := strconv.Atoi(tag[:end])
	return n
}
