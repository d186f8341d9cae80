// Package environment checks installed packages instead of a single file. It determines
// which file a process loads for NCCL, RCCL, NVSHMEM, libibverbs and the run times of
// CUDA and HIP, and which other files it could load instead.
//
// The checks read files only. They simulate the dynamic linker of Linux and import
// nothing. Only the gate env-process starts an interpreter, and only on request.
package environment

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/files/wheel"
)

// An Environment is the set of packages installed for one interpreter.
type Environment struct {
	Path   string   // as given by the user
	Python string   // the interpreter, or "" if unknown
	Site   []string // directories of packages, in the order of import
	Run    bool     // allows starting a process

	distributions []*distribution
	loader        *loader
	byName        map[string][]string // paths of libraries by file name
	processes     []*process
	blind         []string // unreadable files
}

// Host holds the library directories outside the packages.
type Host struct {
	LibraryPath []string // LD_LIBRARY_PATH
	Directories []string // /etc/ld.so.conf and the default directories of the loader
}

// Open reads an environment. path is an interpreter, a virtual environment, the prefix
// of an installation or a directory of packages.
func Open(ctx context.Context, path string, host Host) (*Environment, error) {
	e := &Environment{Path: path, byName: map[string][]string{}}
	var err error
	if e.Python, e.Site, err = locate(path); err != nil {
		return nil, diag.Errorf(diag.Usage, "%s: %w", path, err).
			WithHint("name a Python interpreter, a virtual environment, or a site-packages directory")
	}
	e.loader = newLoader(ctx, host, e.Python)
	var errs []error
	for _, site := range e.Site {
		errs = append(errs, e.readDistributions(site), e.findLibraries(ctx, site))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, diag.Errorf(diag.Gate, "%s: %w", path, err)
	}
	e.simulate()
	return e, ctx.Err()
}

// locate returns the interpreter and the directories of packages of a path.
func locate(path string) (python string, site []string, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return "", nil, err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", nil, errors.Unwrap(err)
	case !info.IsDir():
		return ofInterpreter(path)
	case isFile(filepath.Join(path, "pyvenv.cfg")):
		return ofVenv(path)
	}
	infos, err := filepath.Glob(filepath.Join(quoted(path), "*.dist-info"))
	if base := filepath.Base(path); len(infos) > 0 || base == "site-packages" || base == "dist-packages" {
		return "", []string{path}, err
	}
	if site = below(path); len(site) > 0 {
		python = filepath.Join(path, "bin/python3")
		if !isFile(python) {
			python = ""
		}
		return python, site, nil
	}
	return "", nil, errors.New("no packages found: it holds neither pyvenv.cfg, nor *.dist-info, nor lib/python3*/site-packages")
}

// ofInterpreter derives the directories of packages from the interpreter's path. It
// starts no program.
func ofInterpreter(path string) (python string, site []string, err error) {
	if prefix := filepath.Dir(filepath.Dir(path)); isFile(filepath.Join(prefix, "pyvenv.cfg")) {
		_, site, err = ofVenv(prefix)
		return path, site, err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", nil, err
	}
	file, err := regular.Open(real)
	if err != nil {
		return "", nil, err
	}
	defer file.Close()
	if _, err := elf.NewFile(file); err != nil {
		return "", nil, errors.New("it is a script, not an ELF program: python -c 'import sys; print(sys.executable)' prints its interpreter")
	}
	prefix := filepath.Dir(filepath.Dir(real))
	version := strings.TrimRight(filepath.Base(real), "dmu")
	for _, dir := range []string{ // Debian's own directories come first and last
		filepath.Join(prefix, "local/lib", version, "dist-packages"), filepath.Join(prefix, "lib", version, "site-packages"),
		filepath.Join(prefix, "lib64", version, "site-packages"), filepath.Join(prefix, "lib/python3/dist-packages"),
	} {
		if isDir(dir) {
			site = append(site, dir)
		}
	}
	if len(site) == 0 {
		return "", nil, fmt.Errorf("no packages of %s found below %s", version, prefix)
	}
	return path, unique(site), nil
}

// ofVenv returns the interpreter and the packages of a virtual environment, with the
// packages of the base interpreter if the environment includes them.
func ofVenv(dir string) (python string, site []string, err error) {
	settings, err := regular.ReadFollowed(filepath.Join(dir, "pyvenv.cfg"), 1<<16)
	if err != nil {
		return "", nil, err
	}
	python, site = filepath.Join(dir, "bin/python"), below(dir)
	if len(site) == 0 {
		return "", nil, errors.New("the virtual environment has no lib/python3*/site-packages")
	}
	said := map[string]string{}
	for line := range strings.Lines(string(settings)) {
		key, value, _ := strings.Cut(line, "=")
		said[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
	}
	if strings.EqualFold(said["include-system-site-packages"], "true") {
		base, err := filepath.EvalSymlinks(python)
		if err != nil {
			return "", nil, fmt.Errorf("it shares the packages of its interpreter, and the interpreter was not found: %w", err)
		}
		if _, shared, err := ofInterpreter(base); err == nil {
			site = append(site, shared...)
		}
	}
	return python, unique(site), nil
}

// below lists the directories of packages below a prefix.
func below(prefix string) (site []string) {
	for _, pattern := range []string{"lib/python3*/site-packages", "lib64/python3*/site-packages"} {
		found, _ := filepath.Glob(filepath.Join(quoted(prefix), pattern)) // the pattern is valid
		site = append(site, found...)
	}
	return unique(site)
}

// unique removes links to earlier directories.
func unique(dirs []string) (kept []string) {
	seen := map[string]bool{}
	for _, dir := range dirs {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil && !seen[real] {
			seen[real], kept = true, append(kept, dir)
		}
	}
	return kept
}

// quoted returns a glob pattern that matches only path.
func quoted(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// distribution is one installed project.
type distribution struct {
	name, version string
	site, info    string // directories
	requires      []string
	files         []wheel.Listed
}

func (d *distribution) String() string { return d.name + " " + d.version }

// Bounds of one distribution's files, in bytes, and of the files in a directory of
// packages. A torch with all of CUDA has 30,000 files.
const (
	maxRecord = 64 << 20
	maxFiles  = 2_000_000
)

// readDistributions reads METADATA and RECORD of every distribution. A distribution
// without RECORD, such as Debian's, lists no files.
func (e *Environment) readDistributions(site string) error {
	infos, err := filepath.Glob(filepath.Join(quoted(site), "*.dist-info"))
	if err != nil {
		return err
	}
	for _, info := range infos {
		text, err := regular.ReadFollowed(filepath.Join(info, "METADATA"), maxRecord)
		if errors.Is(err, fs.ErrNotExist) {
			continue // leftovers of a distribution removed by pip
		}
		var header wheel.Header
		if err == nil {
			header, err = wheel.ParseHeader(text)
		}
		if err != nil {
			e.blind = append(e.blind, fmt.Sprintf("%s: %v", filepath.Join(info, "METADATA"), err))
			continue
		}
		d := &distribution{name: wheel.NormalName(header.Get("Name")), version: header.Get("Version"), site: site, info: info, requires: header.Values("Requires-Dist")}
		text, err = regular.ReadFollowed(filepath.Join(info, "RECORD"), maxRecord)
		if err == nil {
			d.files, err = wheel.ParseRecord(text)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			e.blind = append(e.blind, fmt.Sprintf("%s: %v", filepath.Join(info, "RECORD"), err))
		}
		e.distributions = append(e.distributions, d)
	}
	return nil
}

// findLibraries finds all files with the name of a library, whether or not a RECORD
// lists them. It leaves out directories named include, which hold what a compiler links:
// tensorflow-rocm has a librccl.so there that no process loads.
func (e *Environment) findLibraries(ctx context.Context, site string) error {
	count := 0
	return filepath.WalkDir(site, func(path string, entry fs.DirEntry, err error) error {
		switch count++; {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case count > maxFiles:
			return fmt.Errorf("it holds more than the limit of %d files", maxFiles)
		case entry.IsDir() && entry.Name() == "include":
			return fs.SkipDir
		case !entry.IsDir() && wheel.IsLibrary(path) && isFile(path):
			e.byName[entry.Name()] = append(e.byName[entry.Name()], path)
		}
		return nil
	})
}

// owners lists the distributions with the file in their RECORD.
func (e *Environment) owners(path string) (found []owner) {
	for _, d := range e.distributions {
		name, err := filepath.Rel(d.site, path)
		if err != nil {
			continue
		}
		i, ok := slices.BinarySearchFunc(d.files, filepath.ToSlash(name), func(l wheel.Listed, name string) int { return strings.Compare(l.Path, name) })
		if ok {
			found = append(found, owner{d, d.files[i]})
		}
	}
	return found
}

type owner struct {
	*distribution
	listed wheel.Listed
}

// short returns the path of a file for messages, relative to its directory of packages.
func (e *Environment) short(path string) string {
	for _, site := range e.Site {
		if rel, err := filepath.Rel(site, path); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return path
}

// within reports whether a file is in a directory of packages.
func (e *Environment) within(path string) bool { return e.short(path) != path }

// pinned returns the requirement of an installed distribution on a project with this
// name prefix, such as nvidia-nccl-cu13==2.30.7. Without such a requirement it returns
// the first installed project with the prefix, and without that the prefix itself.
func (e *Environment) pinned(prefix string) string {
	for _, d := range e.distributions {
		for _, line := range d.requires {
			line, marker, _ := strings.Cut(line, ";")
			line = strings.Join(strings.Fields(line), "")
			if strings.HasPrefix(wheel.NormalName(line), prefix) && !strings.Contains(marker, "extra") {
				return line
			}
		}
	}
	for _, d := range e.distributions {
		if strings.HasPrefix(d.name, prefix) {
			return d.name
		}
	}
	return prefix
}
