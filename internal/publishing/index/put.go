package index

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"builder/internal/base/atomicfile"
	"builder/internal/base/regular"
	"builder/internal/files/artifact"
)

// damaged reports whether a published file of a record is missing or has other bytes.
func (x *Index) damaged(r Record, f File) bool {
	if !filepath.IsLocal(f.Path) { // a record is untrusted: nothing outside the index is read
		return false
	}
	return !has(filepath.Join(x.dir, filesDir, r.Project, filepath.FromSlash(f.Path)), f.SHA256)
}

// A putter puts files into the index, or only says which ones it would write.
type putter struct {
	writes bool
	file   func(ctx context.Context, to string, a artifact.Artifact) (wrote bool, err error)
	bytes  func(to string, data []byte) (sum string, wrote bool, err error)
}

var (
	writing = putter{true, put, func(to string, data []byte) (string, bool, error) {
		sum := hexSum(data)
		return sum, !has(to, sum), putBytes(to, data)
	}}
	looking = putter{false, func(_ context.Context, to string, a artifact.Artifact) (bool, error) {
		return !has(to, a.SHA256), nil
	}, func(to string, data []byte) (string, bool, error) {
		sum := hexSum(data)
		return sum, !has(to, sum), nil
	}}
)

// has reports whether a file is there with the sha256.
func has(path, sum string) bool {
	have, err := artifact.Of(path, "")
	return err == nil && have.SHA256 == sum
}

// put copies an artifact to a path, unless the same bytes are already there, and reports
// whether it wrote the file. A file changed since it was measured is an error. After an
// error or an interruption no partial copy remains.
func put(ctx context.Context, to string, a artifact.Artifact) (wrote bool, err error) {
	if has(to, a.SHA256) {
		return false, nil
	}
	from, err := regular.Follow(a.Path)
	if err != nil {
		return false, err
	}
	defer from.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return false, err
	}
	return true, atomicfile.Fill(to, func(w io.Writer) error {
		h := sha256.New()
		if _, err := io.Copy(io.MultiWriter(w, h), io.LimitReader(watched{ctx, from}, a.Size+1)); err != nil {
			return err
		}
		if sum := hex.EncodeToString(h.Sum(nil)); sum != a.SHA256 {
			return fmt.Errorf("%s %w: sha256 is %s, was %s", a.Name, ErrChanged, sum, a.SHA256)
		}
		return nil
	})
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
