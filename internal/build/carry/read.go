package carry

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"builder/internal/base/diag"
	"builder/internal/input/store"
)

// A Taker receives the members in the order of the index. Read has checked the digests
// of entries and records. Blob has to check the digest itself.
type Taker interface {
	Entry(id, key string, data []byte) error
	Blob(b store.Blob, r io.Reader) error
	Result(key string, record []byte) error
}

// Read passes the members of a file written by [Write] to a Taker. It ends at the first
// error. Members taken before it have the right digest.
func Read(path string, t Taker) (Index, error) {
	if _, err := os.Stat(path); err != nil {
		return Index{}, diag.Errorf(diag.Usage, "importing: %w", err).WithHint("name what `builder store export --to` wrote")
	}
	x, err := readFile(path, t)
	if err != nil && diag.Worst(err) == diag.OK {
		err = diag.Errorf(diag.Fetch, "importing %s: %w", path, err).
			WithHint("the store keeps the members before this one; copy the file again, or write a new one with `builder store export`")
	}
	return x, err
}

func readFile(path string, t Taker) (Index, error) {
	f, err := os.Open(path)
	if err != nil {
		return Index{}, err
	}
	defer f.Close()
	if err := ended(f); err != nil {
		return Index{}, err
	}
	return readTar(f, t)
}

// ended refuses a file without the two empty blocks at the end of every tar file,
// before anything is read. The usual cause is an incomplete copy.
func ended(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	const block = 512
	end := make([]byte, 2*block)
	_, err = f.ReadAt(end, max(0, info.Size()-int64(len(end))))
	if err != nil || info.Size()%block != 0 || !bytes.Equal(end, make([]byte, len(end))) {
		return fmt.Errorf("the end of the tar file is missing: %w", io.ErrUnexpectedEOF)
	}
	return nil
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
	for _, m := range x.members() {
		if err := next(in, m.path, m.blob.Size); err != nil {
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
func (m member) give(r io.Reader, t Taker) error {
	if m.kind == blob {
		if err := t.Blob(m.blob, r); err != nil {
			return fmt.Errorf("%s (%s): %w", m.path, m.blob.Name, err)
		}
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(r, m.blob.Size))
	if err != nil {
		return fmt.Errorf("%s: %w", m.path, err)
	}
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != m.blob.SHA256 {
		return fmt.Errorf("%s: wrong content: expected sha256 %s, got %s", m.path, m.blob.SHA256, got)
	}
	if m.kind == entry {
		return t.Entry(m.blob.Name, m.blob.SHA256, data)
	}
	return t.Result(m.blob.Name, data)
}
