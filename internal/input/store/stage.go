package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"builder/internal/base/atomicfile"
)

// Stage makes dir hold exactly the blobs, by name, for containers to mount. Files are
// hard links where the file system allows them. Stage keeps a correct directory and
// replaces any other as a whole.
func (s *Store) Stage(dir string, blobs []Blob) error {
	want, err := s.named(blobs)
	if err == nil {
		err = stage(dir, want)
	}
	if err != nil {
		return fmt.Errorf("staging: %w", explain(s.dir, err))
	}
	return nil
}

// stage makes dir hold exactly the files, by name.
func stage(dir string, want map[string]string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	unlock, err := Lock(context.Background(), dir+".lock", nil)
	if err != nil {
		return err
	}
	defer unlock()
	if holds(dir, want) {
		return nil
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".stage-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	for name, blob := range want {
		if err := link(blob, filepath.Join(fresh, name)); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Chmod(fresh, 0o755), os.RemoveAll(dir)); err != nil {
		return err
	}
	return os.Rename(fresh, dir)
}

// named returns the path of each name. It refuses names that lead outside the
// directory, because the names come from locks.
func (s *Store) named(blobs []Blob) (map[string]string, error) {
	want := map[string]string{}
	var errs []error
	for _, b := range blobs {
		path, ok := s.Path(b)
		other, twice := want[b.Name]
		switch {
		case b.Name == "" || b.Name == "." || b.Name == ".." || strings.ContainsAny(b.Name, "/\x00"):
			errs = append(errs, fmt.Errorf("%q is not the name of a file", b.Name))
		case !ok:
			errs = append(errs, fmt.Errorf("%s (sha256 %s) is not in the store", b.Name, b.SHA256))
		case twice && other != path:
			errs = append(errs, fmt.Errorf("two files have the name %s", b.Name))
		default:
			want[b.Name] = path
		}
	}
	return want, errors.Join(errs...)
}

// holds reports whether dir holds these files and no others.
func holds(dir string, want map[string]string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(want) {
		return false
	}
	for _, e := range entries {
		if blob, ok := want[e.Name()]; !ok || !same(filepath.Join(dir, e.Name()), blob) {
			return false
		}
	}
	return true
}

// same reports whether path is blob or a copy of it.
func same(path, blob string) bool {
	info, err1 := os.Lstat(path)
	of, err2 := os.Lstat(blob)
	switch {
	case err1 != nil || err2 != nil || !info.Mode().IsRegular():
		return false
	case os.SameFile(info, of):
		return true
	case info.Size() != of.Size():
		return false
	}
	found, err := Of(path)
	return err == nil && found.SHA256 == filepath.Base(blob)
}

// link copies the file if a hard link is not possible: on another device, with another
// owner, or on a file system without links.
func link(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	return errors.Join(atomicfile.Copy(from, to), os.Chmod(to, 0o444))
}
