// Package locate finds libraries and programs to measure: collective libraries and the
// programs of nccl-tests, in directories, wheels and cells. Package nccltests runs them,
// for bench and gate.
package locate

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/files/wheel"
)

// sonames are the file names loaded by programs: NCCL and RCCL.
var sonames = []string{"libnccl.so.2", "librccl.so.1"}

func isLibrary(name string) bool { return slices.Contains(sonames, path.Base(filepath.ToSlash(name))) }

// A Library is a library to measure: its directory and its name.
type Library struct{ Dir, Name string }

// FindLibrary finds a library to measure. place is a wheel, the directory of a cell, a
// directory with the library in it or below it in nvidia/nccl/lib and similar folders, or
// the file itself. What it unpacks lies in the new directory name below scratch.
func FindLibrary(place, scratch, name string) (Library, error) {
	l := Library{Name: filepath.Base(place)}
	abs, err := filepath.Abs(place)
	if err != nil {
		return l, err
	}
	info, err := os.Stat(abs)
	if err != nil {
		return l, err
	}
	if info.IsDir() {
		for _, below := range []string{"", "lib", "nccl/lib", "nvidia/nccl/lib"} {
			for _, soname := range sonames {
				if l.Dir = filepath.Join(abs, below); isFile(filepath.Join(l.Dir, soname)) {
					return l, nil
				}
			}
		}
		abs = wheelOf(abs)
	}
	member := LibraryIn(abs, "")
	if member == "" && !isLibrary(abs) {
		return l, fmt.Errorf("%s not found in %s", strings.Join(sonames, " or "), place)
	}
	if _, err := wheel.ParseName(filepath.Base(abs)); err != nil && member != "" {
		return l, diag.Errorf(diag.Usage, "%w", err).WithHint("give the file its name back: pip download and pip wheel write a full one")
	}
	l.Dir = filepath.Join(scratch, name)
	if err := os.Mkdir(l.Dir, 0o755); err != nil {
		return l, err
	}
	if member == "" { // copied, because a guest may not see all that lies beside the library
		to := filepath.Join(l.Dir, filepath.Base(abs))
		return l, errors.Join(atomicfile.Copy(abs, to), os.Chmod(to, 0o755))
	}
	return l, Unpack(abs, func(name string) bool { return name == member }, l.Dir)
}

// wheelOf returns the wheel in the directory of a cell, or "" for any other directory.
func wheelOf(dir string) string {
	found, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(found) != 1 {
		return ""
	}
	return found[0]
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// TestsDir returns the directory of the nccl-tests programs: place itself, or the
// unpacked programs of a wheel.
func TestsDir(place, scratch string) (string, error) {
	dir, err := filepath.Abs(place)
	if err != nil {
		return "", err
	}
	if inside := wheelOf(dir); inside != "" {
		place = inside
	}
	if filepath.Ext(place) == ".whl" {
		dir = filepath.Join(scratch, "programs")
		if err := os.Mkdir(dir, 0o755); err != nil {
			return "", err
		}
		if err := Unpack(place, func(name string) bool { return strings.HasSuffix(name, "_perf") }, dir); err != nil {
			return "", diag.Errorf(diag.Usage, "--programs: %w", err)
		}
	}
	found, err := filepath.Glob(filepath.Join(dir, "*_perf"))
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", diag.Errorf(diag.Usage, "--programs: no program in %s", place).
			WithHint("name the directory of all_reduce_perf, or a wheel of the recipe nccl-tests")
	}
	return dir, nil
}

// Unpack extracts the chosen members of a wheel into a directory under their base
// names.
func Unpack(file string, chosen func(name string) bool, dir string) error {
	w, err := wheel.Open(file)
	if err != nil {
		return err
	}
	defer w.Close()
	for _, f := range w.Files {
		if base := path.Base(f.Name); chosen(f.Name) && filepath.IsLocal(base) {
			to, err := os.OpenFile(filepath.Join(dir, base), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
			if err == nil {
				err = errors.Join(w.Copy(to, f.Name), to.Close())
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// LibraryIn returns the NCCL or RCCL member of a wheel: the promised one, or the only
// one with such a name. It returns "" for a file that is not a wheel; the gate
// wheel-format reports these.
func LibraryIn(file, promised string) string {
	w, err := wheel.Open(file)
	if err != nil {
		return ""
	}
	defer w.Close()
	var found []string
	for _, f := range w.Files {
		if f.Name == promised || promised == "" && isLibrary(f.Name) {
			found = append(found, f.Name)
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}
