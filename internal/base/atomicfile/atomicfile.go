// Package atomicfile replaces files as a whole or not at all: a reader never sees
// half of one, and neither does anybody after a kill or a power loss. It keeps
// nobody else from writing: that is what a lock is for.
package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Write replaces the file at path by content.
func Write(path string, content []byte) error {
	return Fill(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// Fill replaces the file at path by what fill writes; where fill fails nothing
// changes. It writes a file beside it and renames that. What a kill leaves behind
// is a hidden file with another name, which nobody reads.
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
		err = errors.Join(temp.Chmod(0o644), temp.Sync()) // durable before the file gets its name
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

// IsTemp reports whether a name is that of a file which [Fill] did not end, or has not
// ended yet.
func IsTemp(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".tmp")
}

// Copy replaces the file at to by what the file at from holds, which may be on
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
