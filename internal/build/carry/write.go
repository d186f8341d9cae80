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
	"path/filepath"
	"strings"
	"time"

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

// isFile reports whether a load is written to path as one tar file.
func isFile(path string) bool { return strings.HasSuffix(path, ".tar") }

// Write writes a load to a tar file, or to a directory if the name does not end in
// .tar. The result appears whole or not at all. Write compares every file of the store
// with its digest.
func Write(to string, l Load) (Index, error) {
	x := l.index()
	if err := x.problem(); err != nil {
		return x, fmt.Errorf("writing %s: %w", to, err)
	}
	out, err := newTarget(to)
	if err != nil {
		return x, err
	}
	err = out.add(indexName, int64(len(x.encode())), bytes.NewReader(x.encode()))
	records := l.records()
	for _, m := range x.members() {
		if err == nil {
			err = l.add(out, m, records[m.path])
		}
	}
	if err = errors.Join(err, out.close()); err == nil {
		err = os.Rename(out.path(), to)
	}
	if err != nil {
		return x, errors.Join(fmt.Errorf("writing %s: %w", to, err), os.RemoveAll(out.path()))
	}
	return x, nil
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

func (l Load) add(out target, m member, record []byte) error {
	if m.kind != blob {
		return out.add(m.path, m.blob.Size, bytes.NewReader(record))
	}
	f, err := l.Open(m.blob)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if err := out.add(m.path, m.blob.Size, io.TeeReader(f, sum)); err != nil {
		return fmt.Errorf("%s: %w", m.blob.Name, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != m.blob.SHA256 {
		return diag.Errorf(diag.Fetch, "%s: the store's file is damaged: expected sha256 %s, got %s", m.blob.Name, m.blob.SHA256, got).
			WithHint("`builder store verify` removes it; the next export fetches it again")
	}
	return nil
}

// A target receives members under a temporary path.
type target interface {
	add(path string, size int64, r io.Reader) error
	close() error
	path() string
}

func newTarget(to string) (target, error) {
	if isFile(to) {
		f, err := os.CreateTemp(filepath.Dir(to), ".carry-*")
		if err != nil {
			return nil, err
		}
		return &tarTarget{f, tar.NewWriter(f)}, nil
	}
	dir, err := os.MkdirTemp(filepath.Dir(to), ".carry-*")
	return dirTarget(dir), err
}

type tarTarget struct {
	file *os.File
	tar  *tar.Writer
}

func (t *tarTarget) path() string { return t.file.Name() }

func (t *tarTarget) add(path string, size int64, r io.Reader) error {
	err := t.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Size: size, Mode: 0o444, ModTime: time.Unix(0, 0)})
	if err != nil {
		return err
	}
	return exactly(t.tar, r, size)
}

func (t *tarTarget) close() error {
	return errors.Join(t.tar.Close(), t.file.Chmod(0o644), t.file.Sync(), t.file.Close())
}

type dirTarget string

func (d dirTarget) path() string { return string(d) }

func (d dirTarget) add(path string, size int64, r io.Reader) error {
	to := filepath.Join(string(d), filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(exactly(f, r, size), f.Sync(), f.Close())
}

func (d dirTarget) close() error { return os.Chmod(string(d), 0o755) }

// exactly copies size bytes and returns an error if the reader has fewer or more.
func exactly(w io.Writer, r io.Reader, size int64) error {
	n, err := io.Copy(w, io.LimitReader(r, size))
	if err != nil {
		return err
	}
	if n < size {
		return fmt.Errorf("%w: %d of %d bytes", io.ErrUnexpectedEOF, n, size)
	}
	return nil
}
