package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"builder/internal/base/size"
	"builder/internal/files/inspect"
)

// cached matches a line of ldconfig -p: libnccl.so.2 (libc6,x86-64) => /lib/…
var cached = regexp.MustCompile(`^\s*(\S+) \(([^)]*)\) => (/\S+)$`)

// readLinkerCache returns the 64-bit libraries in the linker's cache.
func (e *exam) readLinkerCache(ctx context.Context) (map[string][]string, error) {
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

// readPackages returns the package directories of the default python3.
func (e *exam) readPackages(ctx context.Context) []string {
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

// libraryPlaces are the usual directories of NCCL and RCCL outside the linker's cache.
var libraryPlaces = []string{
	"/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib", "/usr/local/nccl*/lib",
	"/opt/rocm*/lib", "/opt/rocm*/rccl/lib",
	"/usr/local/lib", "/usr/lib/*-linux-gnu", "/usr/lib64",
}

// packagePlaces are their directories in Python's package directories.
var packagePlaces = []string{"nvidia/nccl/lib", "torch/lib", "_rocm_sdk_libraries*/lib", "_rocm_sdk_core/lib"}

func nccl(_ context.Context, e *exam) Finding { return e.collectives("libnccl.so.2") }

func rccl(_ context.Context, e *exam) Finding { return e.collectives("librccl.so.1") }

// collectives checks the installed versions of a library. It reads them from the files'
// bytes. It loads no library, so no code of it runs.
func (e *exam) collectives(soname string) Finding {
	files, err := e.libraries(soname)
	var lines, versions []string
	for _, file := range files {
		found, err := readBytes(e, file, inspect.Versions)
		if err != nil {
			lines = append(lines, fmt.Sprintf("%s: %v", file, err))
			continue
		}
		version := cmp.Or(strings.Join(found, ", "), "has no version")
		versions = append(versions, version)
		lines = append(lines, fmt.Sprintf("%s: %s", file, version))
	}
	slices.Sort(versions)
	switch versions = slices.Compact(versions); {
	case len(versions) > 1:
		return warn("%d versions: %s", len(versions), strings.Join(versions, ", ")).
			remedy("keep one: the order of loading and LD_LIBRARY_PATH decide which one a process gets").detail(lines...)
	case len(versions) == 1:
		return ok("%s", versions[0]).detail(lines...)
	case len(lines) > 0:
		return unknown("%s, not readable", size.Count(len(lines), "file")).detail(lines...)
	case err != nil:
		return unknown("not in the usual places; %s", silence("ldconfig", err))
	}
	return none("no %s", soname)
}

// libraries returns the files of a library. PyTorch's wheel has it without the number in
// its name. The error is that of ldconfig.
func (e *exam) libraries(soname string) ([]string, error) {
	linked, err := e.linked()
	files, places := slices.Clone(linked[soname]), slices.Clone(libraryPlaces)
	for _, dir := range e.packages() {
		for _, below := range packagePlaces {
			places = append(places, path.Join(dir, below))
		}
	}
	for _, place := range places {
		files = append(files, e.Glob(path.Join(place, soname))...)
		files = append(files, e.Glob(path.Join(place, strings.TrimRight(soname, ".0123456789")))...)
	}
	return e.distinct(files), err
}

// distinct drops other names of the same file.
func (e *exam) distinct(files []string) []string {
	var kept []string
	var infos []fs.FileInfo
	for _, file := range files {
		info, err := e.Stat(file)
		same := func(other fs.FileInfo) bool { return os.SameFile(info, other) }
		if err != nil || slices.Contains(kept, file) || slices.ContainsFunc(infos, same) {
			continue
		}
		kept, infos = append(kept, file), append(infos, info)
	}
	return kept
}

// readBytes opens a file of the host and reads it.
func readBytes[T any](e *exam, file string, read func(io.ReaderAt) (T, error)) (content T, err error) {
	f, err := e.Open(file)
	if err != nil {
		return content, err
	}
	defer f.Close()
	r, random := f.(io.ReaderAt)
	if !random {
		return content, errors.New("no random access")
	}
	return read(r)
}
