package carry

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
)

// A Load is the content of an archive to write.
type Load struct {
	Entries []lock.Entry
	Blobs   []store.Blob
	Open    func(store.Blob) (io.ReadCloser, error)
}

// index makes the index of a load, and returns the entries by path. Files with the same
// content appear once.
func (l Load) index() (x Index, entries map[string][]byte) {
	x, entries = Index{Schema: schema, Members: []Member{}}, map[string][]byte{}
	for _, e := range l.Entries {
		data := e.Canonical()
		m := memberOf(Entries, store.Blob{Name: e.ID, Size: int64(len(data)), SHA256: e.Key()})
		x.Members, entries[m.Path] = append(x.Members, m), data
	}
	for _, b := range l.Blobs {
		x.Members = append(x.Members, memberOf(Blobs, b))
	}
	slices.SortStableFunc(x.Members, order)
	x.Members = slices.CompactFunc(x.Members, func(a, b Member) bool { return a.Path == b.Path && a.folder() == Blobs })
	return x, entries
}

// Write writes a load to a tar file, which appears whole or not at all. It compares every
// file of the store with its digest.
func Write(to string, l Load) (Index, error) {
	x, entries := l.index()
	err := x.problem()
	var out *atomicfile.File
	if err == nil {
		out, err = atomicfile.Create(to)
	}
	if err == nil {
		err = out.Finish(l.write(out, x, entries))
	}
	if err != nil {
		return x, fmt.Errorf("writing %s: %w", to, err)
	}
	return x, nil
}

func (l Load) write(w io.Writer, x Index, entries map[string][]byte) error {
	index, err := json.MarshalIndent(x, "", " ")
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	if err := add(out, indexName, int64(len(index)), bytes.NewReader(index)); err != nil {
		return err
	}
	for _, m := range x.Members {
		if entry, ok := entries[m.Path]; ok {
			err = add(out, m.Path, m.Size, bytes.NewReader(entry))
		} else {
			err = l.copy(out, m)
		}
		if err != nil {
			return err
		}
	}
	return out.Close()
}

// copy adds a file of the store.
func (l Load) copy(out *tar.Writer, m Member) error {
	f, err := l.Open(m.blob())
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if err := add(out, m.Path, m.Size, io.TeeReader(f, sum)); err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != m.SHA256 {
		return diag.Errorf(diag.Fetch, "%s: the store's file is damaged: expected sha256 %s, got %s", m.Name, m.SHA256, got).
			WithHint("`builder store verify` removes it; the next export fetches it again")
	}
	return nil
}

func add(out *tar.Writer, path string, size int64, r io.Reader) error {
	err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Size: size, Mode: 0o444, ModTime: time.Unix(0, 0)})
	if err != nil {
		return err
	}
	n, err := io.CopyN(out, r, size)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %d of %d bytes", io.ErrUnexpectedEOF, n, size)
	}
	return err
}
