package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Inside returns a directory with untrusted content as a file system. Symbolic links
// may not lead out of the directory. Only directories and regular files of at most max
// bytes can be opened. Errors contain the whole path.
func Inside(dir string, max int64) (fs.FS, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return inside{root, dir, max}, nil
}

// ReadInside reads a file of at most max bytes. No link leads out of its directory.
func ReadInside(path string, max int64) ([]byte, error) {
	dir, err := Inside(filepath.Dir(path), max)
	if err != nil {
		return nil, err
	}
	return fs.ReadFile(dir, filepath.Base(path))
}

type inside struct {
	root *os.Root
	dir  string // prefix of paths in errors
	max  int64
}

// Open implements [fs.FS].
func (i inside) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	f, err := open(name, opener{i.root.Stat, i.root.OpenFile, i.check})
	if err != nil {
		return nil, i.explain(name, err)
	}
	return f, nil
}

// ReadFile implements [fs.ReadFileFS]. It also bounds a file that grows during the
// read.
func (i inside) ReadFile(name string) ([]byte, error) {
	f, err := i.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := All(f, i.max)
	return data, at(i.path(name), err)
}

// check rejects files that are neither directories nor regular files of at most i.max
// bytes.
func (i inside) check(name string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return nil
	case info.Mode().IsRegular() && info.Size() > i.max:
		return tooLarge(i.max)
	}
	return check(name, info)
}

// path returns the whole path of a name.
func (i inside) path(name string) string { return filepath.Join(i.dir, name) }

// explain adds the whole path to an error. It recognises a link out of the directory by
// its message, because the standard library has no error value for it.
func (i inside) explain(name string, err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	if strings.Contains(err.Error(), "escapes") {
		err = fmt.Errorf("a symbolic link points outside %s", i.dir)
	}
	return &fs.PathError{Op: "open", Path: i.path(name), Err: err}
}
