package signing

import (
	"errors"
	"os"
	"path/filepath"

	"builder/internal/base/regular"
)

// A trustReader reads a trust file and the files that it names.
type trustReader struct{ path string }

// beside returns the path of a file that the trust file names.
func (r *trustReader) beside(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(r.path), name)
}

// inWorkTree reports whether a file lies below the working directory. It may come from a
// checkout, in which a link could lead to a file that only the user may read.
func inWorkTree(path string) bool {
	dir, err1 := os.Getwd()
	full, err2 := filepath.Abs(path)
	rest, err3 := filepath.Rel(dir, full)
	return errors.Join(err1, err2, err3) == nil && filepath.IsLocal(rest)
}

// read reads a file that the trust file names.
func (r *trustReader) read(name string, limit int64) ([]byte, error) {
	read := regular.ReadFollowed
	if name == filepath.Base(r.path) && inWorkTree(r.path) {
		read = regular.ReadInside
	}
	return read(r.beside(name), limit)
}
