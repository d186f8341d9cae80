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

// Write replaces the file at path with content.
func Write(path string, content []byte) error {
	return Fill(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// Fill replaces the file at path with the output of fill. If fill fails, nothing
// changes. Fill writes a temporary file in the same directory and renames it. A killed
// process leaves a hidden file with another name, which is never read.
func Fill(path string, fill func(io.Writer) error) error {
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	temp, err := os.CreateTemp(dir, "."+name+".*.tmp")
	if err != nil {
		return err
	}
	err = fill(temp)
	if err == nil {
		err = errors.Join(temp.Chmod(0o644), temp.Sync()) // on disk before the rename
	}
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return syncDir(dir)
}

// IsTemp reports whether a name is that of an unfinished file of [Fill].
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
	return Fill(to, func(w io.Writer) error {
		_, err := io.Copy(w, src)
		return err
	})
}

// syncDir makes a rename in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
