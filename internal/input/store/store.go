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
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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
	sweep(filepath.Join(dir, temps))
	return &Store{dir: dir, policy: retry.Default, client: client}, nil
}

// Peek returns the store in dir for reading only. It makes and removes nothing.
func Peek(dir string) *Store { return &Store{dir: dir} }

// sweep removes the temporary files of killed processes from their folder. It ignores
// errors, because the files do no harm.
func sweep(folder string) {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.Remove(filepath.Join(folder, e.Name()))
		}
	}
}

// Path returns the path of b if the store has it with the right size. It does not check
// the content again; [Store.Use] does.
func (s *Store) Path(b Blob) (string, bool) {
	if b.problem() != nil {
		return "", false
	}
	path := slotOf(s.dir, b.SHA256).blob
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
		slotOf(s.dir, b.SHA256).note()
		return nil
	}
	err = diag.Errorf(diag.Fetch, "verifying %s: the file in the store is damaged: expected sha256 %s, got %s", b.Name, b.SHA256, found.SHA256).
		WithHint("builder removed it; the next run fetches or builds it again, with the same --set if it came from there; if this repeats, check the disk")
	return errors.Join(err, slotOf(s.dir, b.SHA256).drop())
}

// A Place is an address of a blob: an http, https or file URL, or a path. It may hold
// credentials and prints without them.
type Place string

// String returns the place without user information and query.
func (s Place) String() string { return Redact(string(s)) }

var queryPattern = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s"'?]*)\?[^\s"'#)]*`)

// Redact removes user information and queries from the URLs in a text, because they may
// hold tokens.
func Redact(text string) string {
	return queryPattern.ReplaceAllString(diag.Redact(text), "$1?…")
}

// local returns the path of a place on this host, or false for a place in the network.
func (s Place) local() (string, bool, error) {
	scheme, _, ok := strings.Cut(string(s), "://")
	switch {
	case !ok:
		return string(s), true, nil
	case scheme == "http" || scheme == "https":
		return "", false, nil
	case scheme != "file":
		return "", false, fmt.Errorf("%q is not http, https or file", scheme)
	}
	u, err := url.Parse(string(s))
	if err != nil || u.Path == "" || u.Host != "" && u.Host != "localhost" {
		return "", false, fmt.Errorf("write a file URL as file:///path")
	}
	return u.Path, true, nil
}
