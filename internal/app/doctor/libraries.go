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

	"builder/internal/files/inspect"
	"builder/internal/machine/host"
)

// cached matches a line of ldconfig -p: libnccl.so.2 (libc6,x86-64) => /lib/…
var cached = regexp.MustCompile(`^\s*(\S+) \(([^)]*)\) => (/\S+)$`)

// linked returns the 64-bit libraries in the linker's cache: paths by soname.
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

// library returns the path of a soname, or "" if the linker's cache has none.
func (e *exam) library(ctx context.Context, soname string) (string, error) {
	found, err := e.linked(ctx)
	if err != nil || len(found[soname]) == 0 {
		return "", err
	}
	return found[soname][0], nil
}

// packages returns the package directories of the default python3.
func (e *exam) packages(ctx context.Context) []string {
	text, err := e.Run(ctx, "python3", "-I", "-c", "import sys; print('\\n'.join(sys.path))")
	if err != nil {
		return nil // python3 is optional
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

// maxLibraries limits the number of libraries to read.
const maxLibraries = 32

// A family describes a collectives library: its soname and its usual locations outside
// the linker's cache.
type family struct {
	soname     string
	places     []string
	inPackages []string // relative to Python's package directories
	unnumbered bool     // also search without the version suffix, as in PyTorch's wheel
}

var (
	ncclFamily = family{
		soname:     "libnccl.so.2",
		places:     []string{"/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib", "/usr/local/nccl*/lib", "/usr/local/lib", "/usr/lib/*-linux-gnu", "/usr/lib64"},
		inPackages: []string{"nvidia/nccl/lib", "torch/lib"},
	}
	rcclFamily = family{
		soname:     "librccl.so.1",
		places:     []string{"/opt/rocm*/lib", "/opt/rocm*/rccl/lib", "/usr/local/lib", "/usr/lib/*-linux-gnu", "/usr/lib64"},
		inPackages: []string{"_rocm_sdk_libraries*/lib", "_rocm_sdk_core/lib", "torch/lib"},
		unnumbered: true,
	}
)

func nccl(ctx context.Context, e *exam) Finding { return e.collectives(ctx, ncclFamily) }

func rccl(ctx context.Context, e *exam) Finding { return e.collectives(ctx, rcclFamily) }

// collectives checks the installed versions of a family.
func (e *exam) collectives(ctx context.Context, f family) Finding {
	switch found := e.installed(ctx, f); {
	case len(found.lines) > 0 && len(found.versions) == 0:
		return unknown("%s, not readable", count(len(found.lines), "file")).detail(found.lines...)
	case len(found.versions) > 1:
		return warn("%d versions: %s", len(found.versions), strings.Join(found.versions, ", ")).
			remedy("keep one: the order of loading and LD_LIBRARY_PATH decide which one a process gets").detail(found.lines...)
	case len(found.versions) == 1:
		return ok("%s", found.versions[0]).detail(found.lines...)
	case found.err != nil:
		return unknown("not in the usual places; %s", silence("ldconfig", found.err))
	}
	return none("no %s", f.soname)
}

// installed holds the versions of a family's libraries.
type installed struct {
	lines    []string // one per file
	versions []string // sorted, each once
	err      error    // of ldconfig
}

// installed reads the versions of a family from the files' bytes. It loads no library,
// so no code of it runs. The files have some hundred megabytes and are read once.
func (e *exam) installed(ctx context.Context, f family) installed {
	found, known := e.libraries[f.soname]
	if !known {
		found = e.readFamily(ctx, f)
		e.libraries[f.soname] = found
	}
	return found
}

func (e *exam) readFamily(ctx context.Context, f family) (found installed) {
	linked, err := e.linked(ctx)
	found.err = err
	files, places := slices.Clone(linked[f.soname]), slices.Clone(f.places)
	for _, dir := range e.packages(ctx) {
		for _, below := range f.inPackages {
			places = append(places, path.Join(dir, below))
		}
	}
	for _, place := range places {
		files = append(files, e.Glob(path.Join(place, f.soname))...)
		if f.unnumbered {
			files = append(files, e.Glob(path.Join(place, strings.TrimRight(f.soname, ".0123456789")))...)
		}
	}
	for _, file := range e.distinct(files) {
		version, err := e.version(file)
		if err != nil {
			found.lines = append(found.lines, fmt.Sprintf("%s: %v", file, err))
			continue
		}
		found.versions = append(found.versions, version)
		found.lines = append(found.lines, fmt.Sprintf("%s: %s", file, version))
	}
	slices.Sort(found.versions)
	found.versions = slices.Compact(found.versions)
	return found
}

// distinct drops other names of the same file.
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

// version returns the versions found in the bytes of a library.
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
		return "has no version", nil
	}
	return strings.Join(versions, ", "), nil
}

// mpi runs mpirun to read its version.
func mpi(ctx context.Context, e *exam) Finding {
	text, err := e.Run(ctx, "mpirun", "--version")
	switch {
	case absent(err):
		return none("no mpirun in PATH")
	case err != nil:
		return unknown("%s", silence("mpirun", err))
	case host.FirstLine(text) == "":
		return unknown("mpirun prints nothing")
	}
	// MPICH prints a heading first.
	if v, has := field(text, "Version"); has {
		return ok("MPICH or similar, %s", v)
	}
	return ok("%s", host.FirstLine(text))
}
