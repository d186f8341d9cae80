package linux

import (
	"slices"
	"strings"
	"testing"

	"builder/internal/files/elf"
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
		if got != want || len(enough)+len(old) != len(Releases) {
			t.Errorf("%s: %q, want %q", glibc, got, want)
		}
	}
}

// The list is sorted, so that both halves of Split are read from old to new.
func TestReleasesAreSorted(t *testing.T) {
	if !slices.IsSortedFunc(Releases, func(a, b Release) int { return elf.CompareVersions(a.Glibc, b.Glibc) }) {
		t.Error("Releases are not sorted by glibc")
	}
}
