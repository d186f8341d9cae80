// Package artifact names what a cell made: a file, its digest, and the key of
// the cell that made it. Everything after the build (gates, attestation,
// publishing) speaks of an [Artifact] and takes its digest as the truth, so the
// digest is taken once, here.
package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"builder/internal/base/regular"
)

// Artifact is one file that a cell made. It is a plain value: its methods would
// have to read the file again, and the file may have changed by then.
type Artifact struct {
	Name   string `json:"name"` // base name, as users and indexes see it
	Path   string `json:"path"` // where the file lies on this host
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	Key    string `json:"-"` // key of the locked cell; stands beside the artifact in reports
}

// Of measures the file at path, or the one that a link there leads to, made by the
// cell of that key.
func Of(path, key string) (Artifact, error) { return of(path, key, regular.Follow) }

// Unlinked is [Of] for a file that nobody named, and that lies beside one: a link
// in its place is refused.
func Unlinked(path, key string) (Artifact, error) { return of(path, key, regular.Open) }

func of(path, key string, open func(string) (*os.File, error)) (Artifact, error) {
	f, err := open(path)
	if err != nil {
		return Artifact{}, fmt.Errorf("opening artifact: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	size, err := io.Copy(h, f)
	if err != nil {
		return Artifact{}, fmt.Errorf("hashing artifact: %w", err)
	}
	return Artifact{
		Name:   filepath.Base(path),
		Path:   path,
		SHA256: hex.EncodeToString(h.Sum(nil)),
		Size:   size,
		Key:    key,
	}, nil
}
