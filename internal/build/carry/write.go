package carry

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
)

// A Load is the content of an archive to write.
type Load struct {
	Builder string
	Entries []lock.Entry
	Blobs   []store.Blob
	Results map[string][]byte // records by cell key
	Open    func(store.Blob) (io.ReadCloser, error)
}

// index makes the index of a load. Files with the same content appear once.
func (l Load) index() Index {
	x := Index{Schema: schema, Builder: l.Builder, Cells: []Cell{}, Blobs: []Blob{}, Results: []Blob{}}
	for _, e := range l.Entries {
		x.Cells = append(x.Cells, Cell{e.ID, e.Key(), int64(len(e.Canonical()))})
	}
	seen := map[string]bool{}
	for _, b := range l.Blobs {
		if !seen[b.SHA256] {
			seen[b.SHA256] = true
			x.Blobs = append(x.Blobs, Blob(b))
		}
	}
	for key, record := range l.Results {
		sum := sha256.Sum256(record)
		x.Results = append(x.Results, Blob{key, int64(len(record)), hex.EncodeToString(sum[:])})
	}
	x.sort()
	return x
}

// Write writes a load to a tar file, which appears whole or not at all. It compares every
// file of the store with its digest.
func Write(to string, l Load) (Index, error) {
	x := l.index()
	err := x.problem()
	if err == nil {
		err = atomicfile.Fill(to, func(w io.Writer) error { return l.write(w, x) })
	}
	if err != nil {
		return x, fmt.Errorf("writing %s: %w", to, err)
	}
	return x, nil
}

func (l Load) write(w io.Writer, x Index) error {
	out, index, records := tar.NewWriter(w), x.encode(), l.records()
	if err := add(out, indexName, int64(len(index)), bytes.NewReader(index)); err != nil {
		return err
	}
	for _, m := range x.members() {
		if err := l.add(out, m, records[m.path]); err != nil {
			return err
		}
	}
	return out.Close()
}

// records returns the members outside the store, by path: entries and results.
func (l Load) records() map[string][]byte {
	all := map[string][]byte{}
	for _, e := range l.Entries {
		all["entries/"+e.Key()+".json"] = e.Canonical()
	}
	for key, record := range l.Results {
		all["results/"+key+".json"] = record
	}
	return all
}

func (l Load) add(out *tar.Writer, m member, record []byte) error {
	if m.kind != blob {
		return add(out, m.path, m.blob.Size, bytes.NewReader(record))
	}
	f, err := l.Open(m.blob)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if err := add(out, m.path, m.blob.Size, io.TeeReader(f, sum)); err != nil {
		return fmt.Errorf("%s: %w", m.blob.Name, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != m.blob.SHA256 {
		return diag.Errorf(diag.Fetch, "%s: the store's file is damaged: expected sha256 %s, got %s", m.blob.Name, m.blob.SHA256, got).
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
