// Package linux knows which glibc, libstdc++ and libgcc the releases of Linux
// distributions have.
package linux

import (
	"slices"

	"builder/internal/files/elf"
)

// A Release is a release of a distribution.
type Release struct{ Name, Glibc string }

// Releases lists the releases of clusters, oldest glibc first. "RHEL" stands
// for its rebuilds too: AlmaLinux, CentOS Stream, Oracle Linux and Rocky Linux.
// https://github.com/mayeut/pep600_compliance runs each release and reads its glibc. A
// release of SLES has the glibc of openSUSE Leap of the same number.
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

// A policy maps each namespace to the newest symbol version that every system of a
// manylinux platform has.
type policy map[string]string

// policies follow manylinux-policy.json of auditwheel 6.8.2 for x86_64, oldest first. A
// library with a newer symbol does not load on some system with that glibc: g++ 14 needs
// CXXABI_1.3.15, and Ubuntu 22.04 with glibc 2.35 has CXXABI_1.3.13.
var policies = []policy{
	newPolicy("2.5", "3.4.8", "1.3.1", "4.2.0"),
	newPolicy("2.12", "3.4.13", "1.3.3", "4.3.0"),
	newPolicy("2.17", "3.4.19", "1.3.7", "4.8.0"),
	newPolicy("2.24", "3.4.22", "1.3.10", "4.8.0"),
	newPolicy("2.27", "3.4.24", "1.3.11", "7.0.0"),
	newPolicy("2.31", "3.4.28", "1.3.12", "7.0.0"),
	newPolicy("2.34", "3.4.29", "1.3.13", "7.0.0"),
	newPolicy("2.35", "3.4.30", "1.3.13", "12.0.0"),
	newPolicy("2.39", "3.4.33", "1.3.15", "14.0.0"),
}

func newPolicy(glibc, libstdcxx, abi, libgcc string) policy {
	return policy{"GLIBC": glibc, "GLIBCXX": libstdcxx, "CXXABI": abi, "GCC": libgcc}
}

// Beyond lists the symbol versions in floors, such as "GLIBCXX_3.4.32", that some system
// with the given glibc lacks. The keys of floors are namespaces, such as "GLIBCXX".
func Beyond(floors map[string]string, glibc string) []string {
	var have policy
	for _, p := range policies {
		if elf.CompareVersions(p["GLIBC"], glibc) <= 0 {
			have = p
		}
	}
	var newer []string
	for _, namespace := range Namespaces {
		newest := have[namespace]
		if namespace == "GLIBC" {
			newest = glibc // also between two policies
		}
		if floors[namespace] != "" && elf.CompareVersions(floors[namespace], newest) > 0 {
			newer = append(newer, namespace+"_"+floors[namespace])
		}
	}
	return newer
}

// Oldest returns the oldest glibc of systems that have all required symbols, given as in
// [Beyond]. It is "" if no known system has them, or if none are required.
func Oldest(floors map[string]string) string {
	candidates := []string{floors["GLIBC"]}
	for _, p := range policies {
		candidates = append(candidates, p["GLIBC"])
	}
	slices.SortFunc(candidates, elf.CompareVersions)
	i := slices.IndexFunc(candidates, func(glibc string) bool { return glibc != "" && len(Beyond(floors, glibc)) == 0 })
	if i < 0 || len(Required(floors)) == 0 {
		return ""
	}
	return candidates[i]
}

// Required returns the newest required symbol version of each namespace, such as
// GLIBC_2.14.
func Required(floors map[string]string) []string {
	var all []string
	for _, namespace := range Namespaces {
		if floors[namespace] != "" {
			all = append(all, namespace+"_"+floors[namespace])
		}
	}
	return all
}

// Namespaces lists the namespaces of symbols in the order of reports.
var Namespaces = []string{"GLIBC", "GLIBCXX", "CXXABI", "GCC"}

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
