package locate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/diag"
)

// An installation lists the places of a library and its test programs on a host, as
// installed by the vendor, a distribution or builder.
type installation struct {
	name      string // name accepted by --library
	soname    string
	libraries []string // directory patterns below the root; the first match counts
	tests     string   // recipe of the programs
	programs  []string // directory patterns below the root
}

// installations are the installations known to bench.
var installations = []installation{
	{
		"nccl", "libnccl.so.2",
		[]string{"usr/lib/*-linux-gnu", "usr/lib64", "usr/local/lib", "usr/local/cuda/lib64"},
		"nccl-tests",
		[]string{"opt/nccl-tests/build", "opt/nccl_tests/build", "usr/local/bin", "usr/bin"},
	},
	{
		"rccl", "librccl.so.1",
		[]string{"opt/rocm/lib", "opt/rocm/core/lib", "opt/rocm-*/lib", "usr/lib/*-linux-gnu", "usr/lib64"},
		"rccl-tests",
		[]string{"opt/rocm/bin", "opt/rocm/core/bin", "opt/rocm-*/bin", "opt/rccl-tests/build", "usr/local/bin", "usr/bin"},
	},
}

// installed returns the installation with a name or soname.
func installed(name string) (installation, bool) {
	i := slices.IndexFunc(installations, func(in installation) bool { return in.name == name || in.soname == name })
	if i < 0 {
		return installation{}, false
	}
	return installations[i], true
}

// installedNames lists the names accepted by --library.
func installedNames() string {
	var names []string
	for _, in := range installations {
		names = append(names, in.name)
	}
	return strings.Join(names, " or ")
}

// library returns the file of the library on the host with this root directory.
func (in installation) library(root string) (string, error) {
	found, err := firstIn(root, in.libraries, in.soname)
	if err != nil {
		return "", err
	}
	if found == "" {
		return "", fmt.Errorf("%s not found in %s", in.soname, places(root, in.libraries))
	}
	return found, nil
}

// findTests returns the directory or wheel of the programs: the output of a run of the
// recipe below one of outs, or else the host's programs.
func (in installation) findTests(root string, outs ...string) (string, error) {
	made, err := firstIn("", outs, filepath.Join(in.tests+"-*", "*.whl"))
	if err != nil || made != "" {
		return made, err
	}
	found, err := firstIn(root, in.programs, "all_reduce_perf")
	if err != nil || found == "" {
		return "", err
	}
	return filepath.Dir(found), nil
}

// firstIn returns the file called name in the first pattern with a match, or "" without
// one. Several files for one pattern are an error.
func firstIn(root string, patterns []string, name string) (string, error) {
	for _, pattern := range patterns {
		found, err := distinctFiles(filepath.Join(root, pattern, name))
		if err != nil {
			return "", err
		}
		if len(found) > 1 {
			return "", fmt.Errorf("found several files: %s; name one", strings.Join(found, ", "))
		}
		if len(found) == 1 {
			return found[0], nil
		}
	}
	return "", nil
}

// distinctFiles lists the regular files matching a pattern, each once even if it has
// several names.
func distinctFiles(pattern string) ([]string, error) {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	var found []string
	var known []os.FileInfo
	for _, name := range names {
		info, err := os.Stat(name)
		again := slices.ContainsFunc(known, func(k os.FileInfo) bool { return os.SameFile(k, info) })
		if err != nil || !info.Mode().IsRegular() || again {
			continue
		}
		found, known = append(found, name), append(known, info)
	}
	return found, nil
}

func places(root string, patterns []string) string {
	var all []string
	for _, pattern := range patterns {
		all = append(all, filepath.Join(root, pattern))
	}
	return strings.Join(all, ", ")
}

// Tests returns the place of the programs for a library: the value of --tests, or
// programs found below --out or on this host.
func Tests(said, soname, out, root string) (string, error) {
	if said != "" || soname == "" {
		return said, nil
	}
	in, known := installed(soname)
	if !known {
		return "", diag.Errorf(diag.Usage, "--tests is missing: name the place of the programs for %s", soname)
	}
	found, err := in.findTests(root, distinct([]string{out, "out"})...)
	if err != nil {
		return "", diag.Errorf(diag.Usage, "--tests: %w", err)
	}
	if found == "" {
		return "", diag.Errorf(diag.Usage, "--tests is missing: %s/%s-* holds no wheel, and all_reduce_perf is not in %s", out, in.tests, places(root, in.programs)).
			WithHint("`builder run %s` builds a wheel of the programs", in.tests)
	}
	return found, nil
}
