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

// Documents are the small documents of a store, by key.
type Documents struct {
	dir string // of the store
}

// Documents returns the documents of the store.
func (s *Store) Documents() Documents { return Documents{s.dir} }

var keyPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$`)

// Put stores a document under a key. The write is atomic.
func (d Documents) Put(key string, data []byte) error {
	if !keyPattern.MatchString(key) {
		return fmt.Errorf("storing the result: %q is not a key", key)
	}
	if err := atomicfile.Write(d.path(key), data); err != nil {
		return fmt.Errorf("storing the result: %w", explain(d.dir, err))
	}
	return nil
}

// Drop removes the document under a key.
func (d Documents) Drop(key string) error {
	if err := os.Remove(d.path(key)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Keys lists the keys of all documents, sorted.
func (d Documents) Keys() []string {
	entries, _ := os.ReadDir(filepath.Join(d.dir, results)) // Open made the folder
	var keys []string
	for _, e := range entries {
		if key, ok := strings.CutSuffix(e.Name(), ".json"); ok && keyPattern.MatchString(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// maxDocument bounds a document, in bytes. The document of a cell with many
// gates is less than a hundredth of it.
const maxDocument = 16 << 20

// Get returns the document under key.
func (d Documents) Get(key string) ([]byte, bool) {
	if !keyPattern.MatchString(key) {
		return nil, false
	}
	data, err := regular.Read(d.path(key), maxDocument)
	return data, err == nil
}

func (d Documents) path(key string) string { return filepath.Join(d.dir, results, key+".json") }
