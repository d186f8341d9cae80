// Package linux knows which glibc the releases of Linux distributions have.
package linux

import "builder/internal/files/elf"

// A Release is a release of a distribution.
type Release struct{ Name, Glibc string }

// Source is the public table that Releases follows: it runs each release and reads its
// glibc. A release of SLES has the glibc of openSUSE Leap of the same number.
const Source = "https://github.com/mayeut/pep600_compliance"

// Releases lists the releases of clusters, oldest glibc first. "RHEL" stands
// for its rebuilds too: AlmaLinux, CentOS Stream, Oracle Linux and Rocky Linux.
var Releases = []Release{
	{"RHEL 8", "2.28"},
	{"Debian 11", "2.31"},
	{"SLES 15 SP5", "2.31"},
	{"Ubuntu 20.04", "2.31"},
	{"Amazon Linux 2023", "2.34"},
	{"RHEL 9", "2.34"},
	{"Ubuntu 22.04", "2.35"},
	{"Debian 12", "2.36"},
	{"SLES 15 SP6", "2.38"},
	{"RHEL 10", "2.39"},
	{"Ubuntu 24.04", "2.39"},
	{"Debian 13", "2.41"},
}

// Split returns the names of the releases whose glibc is at least the given one, and of
// those whose glibc is older.
func Split(glibc string) (enough, old []string) {
	for _, r := range Releases {
		if elf.CompareVersions(r.Glibc, glibc) < 0 {
			old = append(old, r.Name)
		} else {
			enough = append(enough, r.Name)
		}
	}
	return enough, old
}
