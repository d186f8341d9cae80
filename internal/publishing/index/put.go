package index

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"builder/internal/base/atomicfile"
	"builder/internal/base/regular"
	"builder/internal/files/artifact"
)

// ErrChanged means that a file differs from its stated digest.
var ErrChanged = errors.New("has changed")

// has reports whether a file is there with the sha256.
func has(path, sum string) bool {
	have, err := artifact.Of(path, "")
	return err == nil && have.SHA256 == sum
}

// put copies an artifact to a path, unless the same bytes are already there. A file
// changed since it was measured is an error. After an error or an interruption no partial
// copy remains.
func put(ctx context.Context, to string, a artifact.Artifact) error {
	if has(to, a.SHA256) {
		return nil
	}
	from, err := regular.Follow(a.Path)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := atomicfile.Create(to)
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, h), io.LimitReader(watched{ctx, from}, a.Size+1))
	if sum := hex.EncodeToString(h.Sum(nil)); err == nil && sum != a.SHA256 {
		err = fmt.Errorf("%s %w: sha256 is %s, was %s", a.Name, ErrChanged, sum, a.SHA256)
	}
	return out.Finish(err)
}

// watched is a reader that stops when its context ends.
type watched struct {
	ctx context.Context
	r   io.Reader
}

// Read implements [io.Reader].
func (w watched) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.r.Read(p)
}

// putBytes writes data to a path, unless the same bytes are already there.
func putBytes(to string, data []byte) error {
	if has(to, hexSum(data)) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(to, data)
}

// hexSum returns the sha256 of data in hexadecimal.
func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
