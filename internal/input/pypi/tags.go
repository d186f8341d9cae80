package pypi

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/files/wheel"
)

var (
	pythonPattern   = regexp.MustCompile(`^3\.([1-9]?[0-9])$`)
	platformPattern = regexp.MustCompile(`^(x86_64|aarch64)-(manylinux(?:_2_[1-9]?[0-9]|2014))$`)
	interpreterTag  = regexp.MustCompile(`^(cp|py)3([1-9]?[0-9])?$`)
)

// checkTarget refuses a Python and a platform that are none of CPython on Linux with
// glibc.
func checkTarget(python, platform string) error {
	switch {
	case !pythonPattern.MatchString(python):
		return diag.Errorf(diag.Usage, "resolving Python packages: %q is not a Python version such as 3.11", python)
	case !platformPattern.MatchString(platform):
		return diag.Errorf(diag.Usage, "resolving Python packages: %q is not a platform such as x86_64-manylinux_2_28", platform)
	}
	return nil
}

// rank orders tags; a higher rank is better. The ABI decides first: built for one Python,
// then the stable ABI, then no ABI, then any platform. A newer Python decides next, and
// a newer glibc last.
type rank struct{ abi, minor, glibc int }

func (r rank) compare(o rank) int {
	return cmp.Or(cmp.Compare(r.abi, o.abi), cmp.Compare(r.minor, o.minor), cmp.Compare(r.glibc, o.glibc))
}

// rankOf returns the rank of a tag such as cp311-abi3-manylinux_2_17_x86_64. It returns
// false for a tag of another implementation or of a free-threaded Python.
func rankOf(tag string) (rank, bool) {
	parts := strings.Split(tag, "-")
	interpreter := interpreterTag.FindStringSubmatch(parts[0])
	if len(parts) != 3 || interpreter == nil {
		return rank{}, false
	}
	version, _ := wheel.Glibc(parts[2])
	glibc, _ := strconv.Atoi(strings.TrimPrefix(version, "2."))
	minor, _ := strconv.Atoi(interpreter[2]) // 0 for py3
	switch abi := parts[1]; {
	case interpreter[1] == "cp" && abi == parts[0]:
		return rank{3, minor, glibc}, true
	case interpreter[1] == "cp" && abi == "abi3":
		return rank{2, minor, glibc}, true
	case abi == "none" && parts[2] != "any":
		return rank{1, minor, glibc}, true
	}
	return rank{0, minor, glibc}, parts[1] == "none"
}

// best returns the best of the wheels that uv lists for a release: all that fit the
// Python and the platform of the request. The order is total, so the choice does not
// depend on the order of the index.
func best(p release) (found, error) {
	type candidate struct {
		found
		rank
		build int
	}
	var all []candidate
	for _, f := range p.files {
		name, err := wheel.ParseName(f.Filename)
		if err != nil {
			continue
		}
		var build int
		_, _ = fmt.Sscanf(name.Build, "%d", &build) // its leading digits; an empty tag counts as 0
		for _, tag := range name.Tags() {
			if r, ok := rankOf(tag); ok {
				all = append(all, candidate{f, r, build})
			}
		}
	}
	if len(all) == 0 {
		return found{}, fmt.Errorf("%s %s has no wheel for this Python and platform", p.project, p.version)
	}
	return slices.MaxFunc(all, func(a, b candidate) int {
		return cmp.Or(a.rank.compare(b.rank), cmp.Compare(a.build, b.build), cmp.Compare(a.Filename, b.Filename))
	}).found, nil
}
