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

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/base/regular"
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
