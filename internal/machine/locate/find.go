// Package locate finds libraries and programs to measure: collective libraries, the
// programs of nccl-tests, and the GPUs to use. It searches directories, wheels, cells
// and the usual places of vendors. It does not run programs. Package nccltests runs
// them, for bench and gate.
package locate

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/files/artifact"
	"builder/internal/files/elf"
	"builder/internal/files/wheel"
	"builder/internal/machine/bench"
)

// sonames are the file names loaded by programs: NCCL and RCCL.
var sonames = []string{"libnccl.so.2", "librccl.so.1"}

func isLibrary(name string) bool { return slices.Contains(sonames, path.Base(filepath.ToSlash(name))) }

// library finds the library for an argument LABEL=PATH, or the installed library for a
// name alone. It unpacks wheels below scratch.
func library(arg, scratch, root string) (bench.Library, error) {
	label, place, ok := strings.Cut(arg, "=")
	if in, known := installed(arg); known {
		found, err := in.library(root)
		if err != nil {
			return bench.Library{}, diag.Errorf(diag.Usage, "--library: %s: %w", arg, err).WithHint("name its path: --library %s=PATH", arg)
		}
		label, place, ok = arg, found, true
	}
	if !ok || label == "" || place == "" {
		return bench.Library{}, diag.Errorf(diag.Usage, "--library: %q is neither LABEL=PATH nor the name of a library of this host, %s", arg, installedNames())
	}
	file, err := libraryFile(place, scratch)
	if err != nil {
		return bench.Library{}, diag.Errorf(diag.Usage, "--library: %s: %w", label, err).WithHint("name libnccl.so.2, librccl.so.1, a directory that holds one, a wheel, or the directory of a cell")
	}
	a, err := artifact.Of(file, "")
	if err != nil {
		return bench.Library{}, diag.Errorf(diag.Usage, "--library: %s: %w", label, err).WithHint("name libnccl.so.2, librccl.so.1, a directory that holds one, a wheel, or the directory of a cell")
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	return bench.Library{Label: label, Soname: filepath.Base(file), Dir: dir, Path: place, SHA256: a.SHA256}, err
}

func libraryFile(place, scratch string) (string, error) {
	info, err := os.Stat(place)
	switch {
	case err != nil:
		return "", err
	case info.IsDir() && cellWheel(place) != "":
		return libraryFile(cellWheel(place), scratch)
	case info.IsDir():
		return libraryFileIn(place)
	case strings.HasSuffix(place, ".whl"):
		dir, err := unpackDir(place, scratch, isLibrary)
		if err != nil {
			return "", err
		}
		return libraryFileIn(dir)
	case !isLibrary(place):
		return "", fmt.Errorf("%s is neither %s, nor a directory, nor a wheel", place, strings.Join(sonames, " or "))
	}
	return place, nil
}

// cellWheel returns the wheel in the directory of a cell, or "" for any other
// directory.
func cellWheel(dir string) string {
	found, err := distinctFiles(filepath.Join(dir, "*.whl"))
	if err != nil || len(found) != 1 {
		return ""
	}
	return found[0]
}

func libraryFileIn(dir string) (string, error) {
	for _, name := range sonames {
		file := filepath.Join(dir, name)
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("the directory %s has no %s", dir, strings.Join(sonames, " or "))
}

// unpackDir unpacks the only directory of a wheel with a wanted file, and the .libs
// directories from a repair. It returns the path of the unpacked directory.
func unpackDir(place, scratch string, wanted func(string) bool) (string, error) {
	w, err := wheel.Open(place)
	if err != nil {
		return "", err
	}
	defer w.Close()
	var found, beside []string
	for _, f := range w.Files {
		if wanted(f.Name) {
			found = append(found, path.Dir(f.Name))
		}
		if top, _, _ := strings.Cut(f.Name, "/"); strings.HasSuffix(top, ".libs") {
			beside = append(beside, top)
		}
	}
	if found = distinct(found); len(found) != 1 {
		return "", fmt.Errorf("%d directories of the wheel %s hold the wanted files, expected 1", len(found), place)
	}
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return "", err
	}
	for _, dir := range distinct(append(beside, found...)) {
		if _, err := w.Extract(scratch, dir+"/*"); err != nil {
			return "", err
		}
	}
	return filepath.Join(scratch, filepath.FromSlash(found[0])), nil
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// Libraries finds the libraries of all arguments. They must all have the same soname,
// which it returns.
func Libraries(args []string, scratch, root string) (libraries []bench.Library, soname string, err error) {
	var errs []error
	var names []string
	for i, arg := range args {
		l, err := library(arg, filepath.Join(scratch, "library-"+strconv.Itoa(i)), root)
		if errs = append(errs, err); err == nil {
			libraries, names = append(libraries, l), append(names, l.Soname)
		}
	}
	if names = distinct(names); len(names) > 1 {
		errs = append(errs, diag.Errorf(diag.Usage, "--library: no program loads both %s", strings.Join(names, " and ")))
	}
	return libraries, strings.Join(names, " "), errors.Join(errs...)
}

// Programs finds the program of each collective. The error lists missing programs and
// suggests similar ones. Each program must load the library soname.
func Programs(place string, collectives []string, soname, scratch string) ([]bench.Program, error) {
	dir, err := programDir(place, scratch)
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "--tests: %w", err)
	}
	var programs []bench.Program
	var errs []error
	for _, name := range collectives {
		file := filepath.Join(dir, name+"_perf")
		switch info, err := os.Stat(file); {
		case err != nil:
			errs = append(errs, diag.Errorf(diag.Usage, "--collectives: %s has no program %s_perf", place, name).
				WithHint("%s", diag.DidYouMean(name, collectivesIn(dir))))
		case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
			errs = append(errs, diag.Errorf(diag.Usage, "--tests: %s is not an executable file", filepath.Join(place, name+"_perf")))
		default:
			errs = append(errs, checkProgram(file, soname))
		}
		programs = append(programs, bench.Program{Collective: name, Path: file})
	}
	return programs, errors.Join(errs...)
}

// checkProgram refuses a program that cannot load the library under test and would
// measure the same library every time.
func checkProgram(file, soname string) error {
	f, err := os.Open(file)
	if err != nil {
		return diag.Errorf(diag.Usage, "--tests: %w", err)
	}
	defer f.Close()
	if soname == "" || !elf.Is(f) {
		return nil // no library was found, or it is a script, whose programs are unknown
	}
	program, err := elf.Read(f)
	if err != nil {
		return diag.Errorf(diag.Usage, "--tests: reading %s: %w", filepath.Base(file), err)
	}
	if problem := loadFault(program, soname); problem != "" {
		return diag.Errorf(diag.Usage, "--tests: %s %s", filepath.Base(file), problem)
	}
	return nil
}

// loadFault says why the loader would not use the library from LD_LIBRARY_PATH. An
// RPATH has precedence over it, a RUNPATH does not.
func loadFault(program *elf.File, soname string) string {
	switch {
	case !slices.Contains(program.Needed, soname):
		return fmt.Sprintf("does not load %s: it holds a library of its own, or needs another", soname)
	case len(program.Rpath) > 0:
		return fmt.Sprintf("has the RPATH %s, which goes before the library under test", strings.Join(program.Rpath, ":"))
	}
	return ""
}

// programDir returns the directory of the programs. It unpacks a wheel below scratch.
func programDir(place, scratch string) (string, error) {
	info, err := os.Stat(place)
	switch {
	case err != nil:
		return "", err
	case info.IsDir() && cellWheel(place) != "":
		return programDir(cellWheel(place), scratch)
	case info.IsDir():
		return filepath.Abs(place)
	case strings.HasSuffix(place, ".whl"):
		dir, err := unpackDir(place, scratch, func(name string) bool { return strings.HasSuffix(name, "_perf") })
		if err != nil {
			return "", err
		}
		return filepath.Abs(dir)
	}
	return "", fmt.Errorf("%s is neither a directory nor a wheel", place)
}

func collectivesIn(dir string) []string {
	var names []string
	files, _ := filepath.Glob(filepath.Join(dir, "*_perf"))
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), "_perf"))
	}
	return names
}
