// Package store keeps files by the digest of their content. What a lock names is
// fetched into it once, and what is in it has been checked: a file becomes
// visible under its digest only after its size and sha256 were found right, and
// it is read-only from then on. Where the bytes came from does not matter, so a
// mirror, a disk and a colleague's archive are equally good places.
//
// Several processes may share a store. What is half fetched stays for the next
// one to continue.
//
// It knows what a file is by its digest, and what lies under a key not at all: that
// is for results. It decides no name and no place: those are in the lock.
package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"builder/internal/base/diag"
	"builder/internal/base/retry"
)

// A Blob names content: the digest decides, the size is a quick check, and the
// name is for messages and for [Store.Stage].
type Blob struct {
	Name   string
	Size   int64 // 0 or less where it is not known
	SHA256 string
}

var digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// fault refuses what could be a path, or could never be found right.
func (b Blob) fault() error {
	if !digestPattern.MatchString(b.SHA256) {
		return diag.Errorf(diag.Fetch, "%s: %q is no sha256", b.Name, b.SHA256)
	}
	return nil
}

// Store is a directory of blobs.
type Store struct {
	dir    string
	policy retry.Policy
	stall  time.Duration // without a byte, a connection is given up
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

// Open returns the store in dir, which is made where it is missing.
func Open(dir string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening store: %w", err)
	}
	for _, folder := range []string{contents, partials, locks, temps, results, records} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			return nil, fmt.Errorf("opening store: %w", err)
		}
	}
	s := &Store{dir: dir, policy: retry.Default, stall: time.Minute}
	s.sweep()
	return s, nil
}

// Peek returns the store in dir for looking alone: nothing is made, and nothing
// cleared away.
func Peek(dir string) *Store { return &Store{dir: dir} }

// sweep removes what killed processes left. Failing is no harm: the files are
// in nobody's way.
func (s *Store) sweep() {
	entries, _ := os.ReadDir(filepath.Join(s.dir, temps))
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.Remove(filepath.Join(s.dir, temps, e.Name()))
		}
	}
}

// place is where a blob lies once it is there. The digest has been checked.
func (s *Store) place(digest string) string {
	return filepath.Join(s.dir, contents, digest[:2], digest)
}

// Path returns where b lies, if it is there and has the right size. The content
// was checked when it came; [Store.Use] makes sure that it still is.
func (s *Store) Path(b Blob) (string, bool) {
	if b.fault() != nil {
		return "", false
	}
	path := s.place(b.SHA256)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || b.Size > 0 && info.Size() != b.Size {
		return "", false
	}
	return path, true
}

// Verify reads b and compares its digest. A damaged file is removed, so that it
// is fetched again, and is an error all the same.
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
	err = diag.Errorf(diag.Fetch, "verifying %s: the store's file is damaged: expected sha256 %s, got %s", b.Name, b.SHA256, found.SHA256).
		WithHint("it was removed and is fetched again by the next run; if this repeats, the disk is failing")
	return errors.Join(err, s.drop(b.SHA256))
}
