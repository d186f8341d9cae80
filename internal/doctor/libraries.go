package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"builder/internal/host"
	"builder/internal/inspect"
)

// cached is a line of ldconfig -p: libnccl.so.2 (libc6,x86-64) => /lib/…
var cached = regexp.MustCompile(`^\s*(\S+) \(([^)]*)\) => (/\S+)$`)

// linked returns the paths in the cache of the dynamic linker by soname.
func (e *exam) linked(ctx context.Context) (map[string][]string, error) {
	text, err := e.Run(ctx, "ldconfig", "-p")
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for line := range strings.Lines(text) {
		if m := cached.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil && strings.Contains(m[2], "64") {
			found[m[1]] = append(found[m[1]], m[3])
		}
	}
	return found, nil
}

// library returns the path of a soname, "" where the linker knows none.
func (e *exam) library(ctx context.Context, soname string) (string, error) {
	found, err := e.linked(ctx)
	if err != nil || len(found[soname]) == 0 {
		return "", err
	}
	return found[soname][0], nil
}

// packages asks the current Python for the directories of its packages.
func (e *exam) packages(ctx context.Context) []string {
	text, err := e.Run(ctx, "python3", "-I", "-c", "import sys; print('\\n'.join(sys.path))")
	if err != nil {
		return nil // there need not be one
	}
	var dirs []string
	for line := range strings.Lines(text) {
		dir := strings.TrimSpace(line)
		if base := path.Base(dir); path.IsAbs(dir) && (base == "site-packages" || base == "dist-packages") {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// maxLibraries bounds the libraries that are read.
const maxLibraries = 32

func nccl(ctx context.Context, e *exam) Finding {
	return e.collectives(ctx, "libnccl.so.2", "NCCL",
		[]string{"/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib", "/usr/local/nccl*/lib", "/usr/local/lib", "/usr/lib/*-linux-gnu", "/usr/lib64"},
		[]string{"nvidia/nccl/lib", "torch/lib"})
}

func rccl(ctx context.Context, e *exam) Finding {
	return e.collectives(ctx, "librccl.so.1", "RCCL", rcclPlaces, rcclInPackages)
}

var (
	rcclPlaces     = []string{"/opt/rocm*/lib", "/opt/rocm*/rccl/lib", "/usr/local/lib", "/usr/lib/*-linux-gnu", "/usr/lib64"}
	rcclInPackages = []string{"_rocm_sdk_libraries*/lib", "_rocm_sdk_core/lib", "torch/lib"}
)

// rcclVersions are the versions of the RCCL libraries of this host, each once.
func (e *exam) rcclVersions(ctx context.Context) []string {
	_, versions, _ := e.found(ctx, "librccl.so.1", "RCCL", rcclPlaces, rcclInPackages)
	return versions
}

// collectives finds the libraries of a soname and reads their versions from the
// bytes: nothing is loaded, so nothing of them runs.
func (e *exam) collectives(ctx context.Context, soname, what string, places, inPackages []string) Finding {
	lines, versions, err := e.found(ctx, soname, what, places, inPackages)
	switch {
	case len(lines) > 0 && len(versions) == 0:
		return unknown("%s that cannot be read", count(len(lines), "file")).detail(lines...)
	case len(versions) > 1:
		return warn("%d versions: %s", len(versions), strings.Join(versions, ", ")).
			remedy("which one a process gets is decided by who loads first and by LD_LIBRARY_PATH: keep one").detail(lines...)
	case len(versions) == 1:
		return ok("%s", versions[0]).detail(lines...)
	case err != nil:
		return unknown("nothing in the usual places; %s", silence("ldconfig", err))
	}
	return none("no %s", soname)
}

// found reads the libraries of a soname: a line for each, and their versions,
// sorted, each once. The error is that of ldconfig.
func (e *exam) found(ctx context.Context, soname, what string, places, inPackages []string) (lines, versions []string, err error) {
	known, err := e.linked(ctx)
	places = slices.Clone(places)
	for _, dir := range e.packages(ctx) {
		for _, below := range inPackages {
			places = append(places, path.Join(dir, below))
		}
	}
	files := slices.Clone(known[soname])
	unversioned := strings.TrimRight(soname, ".0123456789")
	for _, place := range places {
		files = append(files, e.Glob(path.Join(place, soname))...)
		if what == "RCCL" { // the wheel of PyTorch drops the number
			files = append(files, e.Glob(path.Join(place, unversioned))...)
		}
	}
	for _, file := range e.distinct(files) {
		version, err := e.version(file)
		if err != nil {
			lines = append(lines, fmt.Sprintf("%s: %v", file, err))
			continue
		}
		versions = append(versions, version)
		lines = append(lines, fmt.Sprintf("%s: %s", file, version))
	}
	slices.Sort(versions)
	return lines, slices.Compact(versions), err
}

// distinct leaves out what is the same file under another name.
func (e *exam) distinct(files []string) []string {
	var kept []string
	var infos []fs.FileInfo
	for _, file := range files {
		info, err := e.Stat(file)
		same := func(other fs.FileInfo) bool { return os.SameFile(info, other) }
		if err != nil || slices.Contains(kept, file) || slices.ContainsFunc(infos, same) || len(kept) == maxLibraries {
			continue
		}
		kept, infos = append(kept, file), append(infos, info)
	}
	return kept
}

// version is what a library says of itself.
func (e *exam) version(file string) (string, error) {
	r, done, err := e.Bytes(file)
	if err != nil {
		return "", err
	}
	defer done()
	versions, err := inspect.Versions(r)
	if err != nil {
		return "", err
	}
	if len(versions) == 0 {
		return "says no version", nil
	}
	return strings.Join(versions, ", "), nil
}

// mpi asks the launcher for its version.
func mpi(ctx context.Context, e *exam) Finding {
	text, err := e.Run(ctx, "mpirun", "--version")
	switch {
	case absent(err):
		return none("no mpirun in PATH")
	case err != nil:
		return unknown("%s", silence("mpirun", err))
	case host.FirstLine(text) == "":
		return unknown("mpirun says nothing")
	}
	// MPICH writes a heading first.
	if v, has := field(text, "Version"); has {
		return ok("MPICH or its like, %s", v)
	}
	return ok("%s", host.FirstLine(text))
}
