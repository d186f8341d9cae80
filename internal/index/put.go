package index

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"builder/internal/artifact"
)

// put copies an artifact to its place, unless the same bytes lie there. What has
// changed since it was measured is an error, and nothing is left of it.
func put(to string, a artifact.Artifact) error {
	if have, err := artifact.Of(to, ""); err == nil && have.SHA256 == a.SHA256 {
		return nil
	}
	from, err := os.Open(a.Path)
	if err != nil {
		return err
	}
	defer from.Close()
	sum, err := place(to, io.LimitReader(from, a.Size+1), a.SHA256)
	if err == nil && sum != a.SHA256 {
		err = fmt.Errorf("%s has changed: sha256 %s, it had %s", a.Name, sum, a.SHA256)
	}
	return err
}

// putBytes writes data to its place and returns its sha256.
func putBytes(to string, data []byte) (string, error) {
	sum := sha256.Sum256(data)
	want := hex.EncodeToString(sum[:])
	if have, err := artifact.Of(to, ""); err == nil && have.SHA256 == want {
		return want, nil
	}
	return place(to, bytes.NewReader(data), want)
}

// place writes a file beside its place and moves it there if its digest is the
// wanted one. It returns the digest that it has.
func place(to string, from io.Reader, want string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return "", err
	}
	tmp, err := os.CreateTemp(filepath.Dir(to), ".publish-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(tmp.Name())
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(tmp, h), from)
	if err := errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err != nil {
		return "", err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if sum != want {
		return sum, nil
	}
	return sum, os.Rename(tmp.Name(), to)
}
