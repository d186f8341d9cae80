// Package atomicfile replaces files atomically: a reader sees the old or the new file,
// never a partial one, even after a kill or a power loss. It does not exclude other
// writers. Use a lock for that.
package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Make replaces the file at path with what fill writes, and makes missing directories. If
// fill fails, the file does not change. A killed process leaves a hidden file with another
// name, which is never read.
func Make(path string, fill func(io.Writer) error) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	err = fill(temp)
	if err == nil {
		err = errors.Join(temp.Chmod(0o644), temp.Sync()) // on disk before the rename
	}
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	renamed, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(renamed.Sync(), renamed.Close())
}

// Write replaces the file at path with content.
func Write(path string, content []byte) error {
	return Make(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// Copy replaces the file at to with the content of the file at from, which may be on
// another file system.
func Copy(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	return Make(to, func(w io.Writer) error {
		_, err := io.Copy(w, src)
		return err
	})
}

// IsTemp reports whether a name is that of an unfinished file.
func IsTemp(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".tmp")
}
