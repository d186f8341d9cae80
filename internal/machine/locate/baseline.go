package locate

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/files/elf"
	"builder/internal/files/wheel"
)

// A Baseline is a library for comparing speeds: its directory and its name.
type Baseline struct{ Dir, Name string }

// FindBaseline finds the library to compare with. place is a wheel, a directory with
// the library in it or below it in nvidia/nccl/lib and similar folders, or the file
// itself.
func FindBaseline(place, scratch string) (Baseline, error) {
	r := Baseline{Name: filepath.Base(place)}
	info, err := os.Stat(place)
	if err != nil {
		return r, diag.Errorf(diag.Usage, "--against: %w", err)
	}
	abs, err := filepath.Abs(place)
	if err != nil {
		return r, err
	}
	if info.IsDir() {
		for _, below := range []string{"", "lib", "nccl/lib", "nvidia/nccl/lib"} {
			for _, name := range sonames {
				if r.Dir = filepath.Join(abs, below); isFile(filepath.Join(r.Dir, name)) {
					return r, nil
				}
			}
		}
		return r, diag.Errorf(diag.Usage, "--against: %s not found in %s", strings.Join(sonames, " or "), place)
	}
	r.Dir = filepath.Join(scratch, "against")
	if err := os.Mkdir(r.Dir, 0o755); err != nil {
		return r, err
	}
	if filepath.Ext(place) == ".whl" {
		if _, err := wheel.ParseName(r.Name); err != nil {
			return r, diag.Errorf(diag.Usage, "--against: %w", err).WithHint("give the file its name back: pip download and pip wheel write a full one")
		}
		member := LibraryIn(place, "")
		if member == "" {
			return r, diag.Errorf(diag.Usage, "--against: %s is not a wheel with one %s", place, strings.Join(sonames, " or "))
		}
		return r, Unpack(place, func(name string) bool { return name == member }, r.Dir)
	}
	return r, linkLibrary(abs, r.Dir)
}

// linkLibrary links a library into a directory under the name that programs load.
func linkLibrary(file, dir string) error {
	f, err := os.Open(file)
	if err != nil {
		return diag.Errorf(diag.Usage, "--against: %w", err)
	}
	defer f.Close()
	lib, err := elf.Read(f)
	if err != nil {
		return diag.Errorf(diag.Usage, "--against: %s: %w", file, err).WithHint("name a wheel, a library, or a directory with one")
	}
	for _, name := range sonames {
		if lib.Soname == name {
			return os.Symlink(file, filepath.Join(dir, name))
		}
	}
	return diag.Errorf(diag.Usage, "--against: %s has the soname %q, expected %s", file, lib.Soname, strings.Join(sonames, " or "))
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
	if filepath.Ext(place) == ".whl" {
		dir = filepath.Join(scratch, "programs")
		if err := os.Mkdir(dir, 0o755); err != nil {
			return "", err
		}
		if err := Unpack(place, func(name string) bool { return strings.HasSuffix(name, "_perf") }, dir); err != nil {
			return "", diag.Errorf(diag.Usage, "--tests: %w", err)
		}
	}
	found, err := filepath.Glob(filepath.Join(dir, "*_perf"))
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", diag.Errorf(diag.Usage, "--tests: no program in %s", place).
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
			if err := w.ExtractAs(f.Name, filepath.Join(dir, base), 0o755); err != nil {
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
