package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

var keyPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$`)

// PutResult keeps a small document under a key; it is seen whole or not at all.
func (s *Store) PutResult(key string, data []byte) error {
	if !keyPattern.MatchString(key) {
		return fmt.Errorf("keeping result: %q is no key", key)
	}
	f, err := os.CreateTemp(filepath.Join(s.dir, temps), "result-*")
	if err != nil {
		return fmt.Errorf("keeping result: %w", err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.result(key))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("keeping result: %w", s.explain(err))
	}
	return nil
}

// Result returns the document kept under key.
func (s *Store) Result(key string) ([]byte, bool) {
	if !keyPattern.MatchString(key) {
		return nil, false
	}
	data, err := os.ReadFile(s.result(key))
	return data, err == nil
}

func (s *Store) result(key string) string {
	return filepath.Join(s.dir, results, key+".json")
}

// DropResult removes the document of a key; there need not be one.
func (s *Store) DropResult(key string) error {
	if !keyPattern.MatchString(key) {
		return fmt.Errorf("dropping result: %q is no key", key)
	}
	if err := os.Remove(s.result(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("dropping result: %w", err)
	}
	return nil
}
