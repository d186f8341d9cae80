package linux

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"builder/internal/files/elf"
	"builder/test/kit/check"
)

// Split sends a release with exactly the wanted glibc to those that have enough.
func TestSplit(t *testing.T) {
	for glibc, want := range map[string][2]string{
		"2.17": {"RHEL 8", ""},
		"2.31": {"Debian 11", "RHEL 8"},
		"2.34": {"Amazon Linux 2023", "Ubuntu 20.04"},
		"2.35": {"Ubuntu 22.04", "RHEL 9"},
		"2.9":  {"RHEL 8", ""}, // 2.9 is older than 2.28
		"2.41": {"Debian 13", "Ubuntu 24.04"},
		"2.99": {"", "Debian 13"},
	} {
		enough, old := Split(glibc)
		got := [2]string{strings.Join(enough[:min(1, len(enough))], ""), strings.Join(old[max(0, len(old)-1):], "")}
		check.That(t, got == want && len(enough)+len(old) == len(Releases), "%s: %q, want %q", glibc, got, want)
	}
}

// The list is sorted, so that both halves of Split are read from old to new.
func TestReleasesAreSorted(t *testing.T) {
	check.That(t, slices.IsSortedFunc(Releases, func(a, b Release) int { return elf.CompareVersions(a.Glibc, b.Glibc) }),
		"Releases are not sorted by glibc")
}

// A wheel of g++ 14 promised 2.35 and passed, and Ubuntu 22.04 could not load it.
func TestBeyond(t *testing.T) {
	for _, c := range []struct {
		floors map[string]string
		glibc  string
		want   string
	}{
		{map[string]string{"GLIBC": "2.34", "GLIBCXX": "3.4.30", "CXXABI": "1.3.15"}, "2.35", "CXXABI_1.3.15"},
		{map[string]string{"GLIBC": "2.34", "GLIBCXX": "3.4.30", "CXXABI": "1.3.13"}, "2.35", ""},
		{map[string]string{"GLIBC": "2.34", "GLIBCXX": "3.4.30"}, "2.34", "GLIBCXX_3.4.30"},
		{map[string]string{"GLIBC": "2.37", "GLIBCXX": "3.4.30"}, "2.37", ""},
		{map[string]string{"GLIBC": "2.38", "GLIBCXX": "3.4.32"}, "2.37", "GLIBC_2.38 GLIBCXX_3.4.32"},
		{map[string]string{"GLIBC": "2.17", "GCC": "12.0.0"}, "2.17", "GCC_12.0.0"},
		{map[string]string{"GLIBC": "2.41", "CXXABI": "1.3.15"}, "2.99", ""},
		{map[string]string{"GLIBCXX": "3.4"}, "2.4", "GLIBCXX_3.4"},
		{map[string]string{"OTHER": "9"}, "2.17", ""},
	} {
		check.Same(t, fmt.Sprint(c.floors, c.glibc), c.want, strings.Join(Beyond(c.floors, c.glibc), " "))
	}
}

func TestOldest(t *testing.T) {
	for _, c := range []struct {
		floors map[string]string
		want   string
	}{
		{map[string]string{"GLIBC": "2.14"}, "2.14"},
		{map[string]string{"GLIBC": "2.14", "CXXABI": "1.3.9"}, "2.24"},
		{map[string]string{"GLIBC": "2.38", "GLIBCXX": "3.4.22"}, "2.38"},
		{map[string]string{"GLIBCXX": "3.4.30"}, "2.35"},
		{map[string]string{"GLIBCXX": "3.4.99"}, ""},
		{map[string]string{"OMPI": "1"}, ""},
		{nil, ""},
	} {
		check.Same(t, fmt.Sprint(c.floors), c.want, Oldest(c.floors))
	}
}
