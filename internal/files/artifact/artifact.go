// Package artifact describes a file built by a cell: its digest, and the key of the
// cell. Everything after the build (gates, attestation, publishing) uses an [Artifact]
// and trusts its digest. The digest is therefore computed once, here.
package artifact

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"builder/internal/base/atomicfile"
	"builder/internal/base/regular"
)

// RejectedDir holds refused artifacts, below the directory of a cell.
const RejectedDir = "rejected"

// Artifact is one file built by a cell. It is a plain value. Methods would have to read
// the file again, and it may have changed since.
type Artifact struct {
	Name   string `json:"name"` // base name, as users and indexes see it
	Path   string `json:"path"` // path of the file on this host
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	Key    string `json:"-"` // key of the locked cell; reports print it beside the artifact
}

// Of hashes and measures the file at path, built by the cell with the given key. It
// follows a symbolic link.
func Of(path, key string) (Artifact, error) { return of(path, key, regular.Follow) }

// Unlinked is [Of] for a file the user did not name, such as another subject of an
// attestation in the same directory. It refuses a symbolic link.
func Unlinked(path, key string) (Artifact, error) { return of(path, key, regular.Open) }

func of(path, key string, open func(string) (*os.File, error)) (Artifact, error) {
	f, err := open(path)
	if err != nil {
		return Artifact{}, fmt.Errorf("opening artifact: %w", err)
	}
	defer f.Close()
	size, sum, err := regular.Digest(f)
	if err != nil {
		return Artifact{}, fmt.Errorf("hashing artifact: %w", err)
	}
	return Artifact{Name: filepath.Base(path), Path: path, SHA256: sum, Size: size, Key: key}, nil
}

// Put copies an artifact to a path, unless the same bytes are already there. It replaces a
// symbolic link.
func Put(a Artifact, to string) error {
	if have, err := Unlinked(to, ""); err == nil && have.SHA256 == a.SHA256 {
		return nil
	}
	return Copy(a, to)
}

// ErrChanged means that a file differs from its stated digest.
var ErrChanged = errors.New("has changed")

// Copy replaces the file at to with an artifact. If its bytes are not those that were
// measured, Copy writes nothing and returns [ErrChanged].
func Copy(a Artifact, to string) error {
	from, err := regular.Follow(a.Path)
	if err != nil {
		return err
	}
	defer from.Close()
	return atomicfile.Make(to, func(w io.Writer) error {
		_, sum, err := regular.Digest(io.TeeReader(io.LimitReader(from, a.Size+1), w))
		if err == nil && sum != a.SHA256 {
			err = fmt.Errorf("%s %w: sha256 is %s, was %s", a.Name, ErrChanged, sum, a.SHA256)
		}
		return err
	})
}
