// Package store keeps files by the digest of their content. Each file of a lock is
// fetched once. A file becomes visible under its digest only after its size and sha256
// were verified, and it is read-only from then on. The origin of the bytes does not
// matter: a mirror, a disk and a colleague's archive are equally good places.
//
// Several processes may share a store. The next fetch continues a partial download.
//
// The store knows the digests of its files. Documents under keys are for results, and
// the store does not interpret them. File names and places come from locks.
package store

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"builder/internal/base/diag"
	"builder/internal/base/retry"
)

// A Blob names content. The digest identifies it, the size allows a quick check, and
// the name is for messages and for [Store.Stage].
type Blob struct {
	Name   string
	Size   int64 // 0 or less if unknown
	SHA256 string
}

var digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// problem refuses a digest that could be a path or that no content can have.
func (b Blob) problem() error {
	if !digestPattern.MatchString(b.SHA256) {
		return diag.Errorf(diag.Fetch, "%s: %q is not a sha256", b.Name, b.SHA256)
	}
	return nil
}

// Store is a directory of blobs.
type Store struct {
	dir    string
	policy retry.Policy
	client *http.Client
}

// The folders of a store.
const (
	contents = "sha256"
	partials = "partial"
	locks    = "lock"
	temps    = "tmp"
	records  = "checked"
	results  = "results"
)

// Open returns the store in dir. It makes missing directories.
func Open(dir string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening store: %w", err)
	}
	for _, folder := range []string{contents, partials, locks, temps, results, records} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			return nil, fmt.Errorf("opening store: %w", err)
		}
	}
	s := &Store{dir: dir, policy: retry.Default, client: client}
	s.sweep()
	return s, nil
}

// Peek returns the store in dir for reading only. It makes and removes nothing.
func Peek(dir string) *Store { return &Store{dir: dir} }

// sweep removes the temporary files of killed processes. It ignores errors, because the
// files do no harm.
func (s *Store) sweep() {
	entries, _ := os.ReadDir(filepath.Join(s.dir, temps))
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.Remove(filepath.Join(s.dir, temps, e.Name()))
		}
	}
}

// place returns the path of a blob. The caller has checked the digest's format.
func (s *Store) place(digest string) string {
	return filepath.Join(s.dir, contents, digest[:2], digest)
}

// Path returns the path of b if the store has it with the right size. It does not check
// the content again; [Store.Use] does.
func (s *Store) Path(b Blob) (string, bool) {
	if b.problem() != nil {
		return "", false
	}
	path := s.place(b.SHA256)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || b.Size > 0 && info.Size() != b.Size {
		return "", false
	}
	return path, true
}

// Verify reads b and compares its digest. It removes a damaged file, so that it is
// fetched again, and returns an error.
func (s *Store) Verify(b Blob) error {
	path, ok := s.Path(b)
	if !ok {
		return diag.Errorf(diag.Fetch, "verifying %s (sha256 %s): %w", b.Name, b.SHA256, fs.ErrNotExist)
	}
	found, err := Of(path)
	if err != nil {
		return fmt.Errorf("verifying %s: %w", b.Name, err)
	}
	if found.SHA256 == b.SHA256 {
		s.note(b.SHA256)
		return nil
	}
	err = diag.Errorf(diag.Fetch, "verifying %s: the file in the store is damaged: expected sha256 %s, got %s", b.Name, b.SHA256, found.SHA256).
		WithHint("builder removed it; the next run fetches or builds it again, with the same --set if it came from there; if this repeats, check the disk")
	return errors.Join(err, s.drop(b.SHA256))
}
