package carry

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/input/store"
)

// A Taker receives the members in the order of the index. Read has checked the digests
// of entries. Blob has to check the digest itself.
type Taker interface {
	Entry(id, key string, data []byte) error
	Blob(b store.Blob, r io.Reader) error
}

// Read passes the members of a file written by [Write] to a Taker. It ends at the first
// error. Members taken before it have the right digest.
func Read(path string, t Taker) (Index, error) {
	f, err := regular.Follow(path)
	if err != nil {
		return Index{}, diag.Errorf(diag.Usage, "importing: %w", err).WithHint("name what `builder store export --to` wrote")
	}
	defer f.Close()
	x, err := readTar(f, t)
	if err != nil && diag.Worst(err) == diag.OK {
		err = diag.Errorf(diag.Fetch, "importing %s: %w", path, err).
			WithHint("the store keeps the members before this one; copy the file again, or write a new one with `builder store export`")
	}
	return x, err
}

func readTar(r io.Reader, t Taker) (Index, error) {
	in := tar.NewReader(r)
	if err := next(in, indexName, -1); err != nil {
		return Index{}, err
	}
	x, err := parseIndex(in)
	if err != nil {
		return Index{}, fmt.Errorf("the index: %w", err)
	}
	for _, m := range x.Members {
		if err := next(in, m.Path, m.Size); err != nil {
			return x, err
		}
		if err := m.give(in, t); err != nil {
			return x, err
		}
	}
	extra, err := in.Next()
	if err == nil {
		return x, fmt.Errorf("%q is not in the index", extra.Name)
	}
	if !errors.Is(err, io.EOF) {
		return x, err
	}
	return x, nil
}

// next advances to the next member and returns an error unless it is a regular file
// with this name and size. A negative size is not compared.
func next(in *tar.Reader, name string, size int64) error {
	h, err := in.Next()
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("it ends before %s: %w", name, io.ErrUnexpectedEOF)
	case err != nil:
		return fmt.Errorf("before %s: %w", name, err)
	case h.Name != name:
		return fmt.Errorf("found %q, expected %s", h.Name, name)
	case h.Typeflag != tar.TypeReg:
		return fmt.Errorf("%s is not a regular file", name)
	case size >= 0 && h.Size != size:
		return fmt.Errorf("%s has %d bytes, the index lists %d", name, h.Size, size)
	}
	return nil
}

// give passes one member to a Taker.
func (m Member) give(r io.Reader, t Taker) error {
	if m.folder() == Blobs {
		if err := t.Blob(m.blob(), r); err != nil {
			return fmt.Errorf("%s (%s): %w", m.Path, m.Name, err)
		}
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(r, m.Size))
	if err != nil {
		return fmt.Errorf("%s: %w", m.Path, err)
	}
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != m.SHA256 {
		return fmt.Errorf("%s: wrong content: expected sha256 %s, got %s", m.Path, m.SHA256, got)
	}
	return t.Entry(m.Name, m.SHA256, data)
}
