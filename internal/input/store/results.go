package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"builder/internal/base/atomicfile"
	"builder/internal/base/regular"
)

var keyPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$`)

// PutResult stores a small document under a key. The write is atomic.
func (s *Store) PutResult(key string, data []byte) error {
	if !keyPattern.MatchString(key) {
		return fmt.Errorf("storing the result: %q is not a key", key)
	}
	if err := atomicfile.Write(s.result(key), data); err != nil {
		return fmt.Errorf("storing the result: %w", s.explain(err))
	}
	return nil
}

// DropResult removes the document under a key.
func (s *Store) DropResult(key string) error {
	if err := os.Remove(s.result(key)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Results lists the keys of all documents, sorted.
func (s *Store) Results() []string {
	entries, _ := os.ReadDir(filepath.Join(s.dir, results)) // Open made the folder
	var keys []string
	for _, e := range entries {
		if key, ok := strings.CutSuffix(e.Name(), ".json"); ok && keyPattern.MatchString(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// maxResult bounds a document, in bytes. The document of a cell with many
// gates is less than a hundredth of it.
const maxResult = 16 << 20

// Result returns the document under key.
func (s *Store) Result(key string) ([]byte, bool) {
	if !keyPattern.MatchString(key) {
		return nil, false
	}
	data, err := regular.Read(s.result(key), maxResult)
	return data, err == nil
}

func (s *Store) result(key string) string {
	return filepath.Join(s.dir, results, key+".json")
}
