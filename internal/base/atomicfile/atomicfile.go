// Package atomicfile replaces files atomically: a reader sees the old or the new file,
// never a partial one, even after a kill or a power loss. It does not exclude other
// writers. Use a lock for that.
package atomicfile

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Write replaces the file at path with content.
func Write(path string, content []byte) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return f.Finish(err)
}

// A File is the new content of a file, in a temporary file of the same directory.
type File struct {
	temp *os.File
	path string
}

// Create begins to replace the file at path. The caller writes the content and calls
// Finish. A killed process leaves a hidden file with another name, which is never read.
func Create(path string) (*File, error) {
	dir, name := filepath.Split(path)
	temp, err := os.CreateTemp(cmp.Or(dir, "."), "."+name+".*.tmp")
	return &File{temp, path}, err
}

// Write implements [io.Writer].
func (f *File) Write(p []byte) (int, error) { return f.temp.Write(p) }

// Finish replaces the file, unless the caller could not write its content: then nothing
// changes, and Finish returns the error of the caller.
func (f *File) Finish(err error) error {
	if err == nil {
		err = errors.Join(f.temp.Chmod(0o644), f.temp.Sync()) // on disk before the rename
	}
	err = errors.Join(err, f.temp.Close())
	if err == nil {
		err = os.Rename(f.temp.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.temp.Name()))
	}
	return syncDir(filepath.Dir(f.path))
}

// IsTemp reports whether a name is that of an unfinished [File].
func IsTemp(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".tmp")
}

// Copy replaces the file at to with the content of the file at from, which may be on
// another file system.
func Copy(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	f, err := Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, src)
	return f.Finish(err)
}

// syncDir makes a rename in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
