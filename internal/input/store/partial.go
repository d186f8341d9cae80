package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"builder/internal/base/regular"
	"builder/internal/base/retry"
)

// maxUnknown bounds a blob of unknown size, in bytes.
const maxUnknown = 64 << 30

// otherBytes is the error of a place whose file is complete and another one.
type otherBytes struct{ error }

func (o *otherBytes) Unwrap() error { return o.error }

// anotherFile returns an error of a place whose file is complete and another one.
func anotherFile(format string, args ...any) error { return &otherBytes{fmt.Errorf(format, args...)} }

func tooLong(most int64) error {
	return anotherFile("the file is longer than the expected %d bytes", most)
}

// partial is an incomplete blob. It hashes its bytes as they arrive.
type partial struct {
	file    *os.File
	sum     hash.Hash
	size    int64
	resumed bool // the beginning is from an earlier attempt, and perhaps from another place
}

// openPartial opens the file at path and continues after its content.
func openPartial(path string) (*partial, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", path), f.Close())
	}
	p := &partial{file: f, sum: sha256.New()}
	if p.size, err = io.Copy(p.sum, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	p.resumed = p.size > 0
	return p, nil
}

// A diskError is an error of this host's disk. Another source would not help.
type diskError struct{ error }

func (e *diskError) Unwrap() error { return e.error }

// Write implements [io.Writer].
func (p *partial) Write(data []byte) (int, error) {
	n, err := p.file.Write(data)
	p.sum.Write(data[:n])
	p.size += int64(n)
	if err != nil {
		return n, &diskError{err}
	}
	return n, nil
}

// restart discards all bytes.
func (p *partial) restart() error {
	p.sum.Reset()
	p.size, p.resumed = 0, false
	_, err := p.file.Seek(0, io.SeekStart)
	if err := errors.Join(err, p.file.Truncate(0)); err != nil {
		return &diskError{err}
	}
	return nil
}

func (p *partial) close() { _ = p.file.Close() }

// remove removes a useless partial. After accept the file no longer exists under this
// name.
func (p *partial) remove() { _ = os.Remove(p.file.Name()) }

func (p *partial) digest() string { return hex.EncodeToString(p.sum.Sum(nil)) }

// fill appends the content of r. It stops at the first byte too many, because a server
// may send without end.
func (p *partial) fill(r io.Reader, b Blob) error {
	most := int64(maxUnknown)
	if b.Size > 0 {
		most = b.Size
	}
	_, err := io.CopyBuffer(p, io.LimitReader(r, most-p.size+1), make([]byte, 256<<10))
	if p.size > most {
		p.remove()
		return tooLong(most)
	}
	return err
}

// accept renames p to the blob b, at its slot, if size and digest match. After a
// resumption a wrong digest is temporary, because a fresh start may succeed.
func (p *partial) accept(b Blob, to slot) error {
	if p.size < b.Size {
		return retry.Temporary(fmt.Errorf("%w: got %d of %d bytes", io.ErrUnexpectedEOF, p.size, b.Size), 0)
	}
	if err := wrong(b, p.digest()); err != nil {
		p.remove()
		if p.resumed {
			return retry.Temporary(err, 0)
		}
		return err
	}
	err := errors.Join(os.MkdirAll(filepath.Dir(to.blob), 0o755), p.file.Chmod(0o444), p.file.Sync())
	if err == nil {
		err = os.Rename(p.file.Name(), to.blob)
	}
	if err != nil {
		return &diskError{err}
	}
	_ = os.Remove(to.record) // a new file counts as used now
	to.note()
	return nil
}

// Check compares the file at path with the size, if b states one, and the digest of b.
func (b Blob) Check(path string) error {
	is, err := Of(path)
	if err != nil || is.SHA256 == b.SHA256 && (b.Size <= 0 || is.Size == b.Size) {
		return err
	}
	return fmt.Errorf("%s: expected sha256 %s, got %s of %d bytes", b.Name, b.SHA256, is.SHA256, is.Size)
}

// wrong returns an error if b has another digest.
func wrong(b Blob, digest string) error {
	if digest == b.SHA256 {
		return nil
	}
	return anotherFile("wrong content: expected sha256 %s, got %s", b.SHA256, digest)
}

// take stores the content of r in the store at dir if it is b. A blob without a digest
// takes any content.
func take(dir string, b Blob, r io.Reader) (Blob, error) {
	f, err := os.CreateTemp(filepath.Join(dir, temps), "blob-*")
	if err != nil {
		return Blob{}, &diskError{err}
	}
	p := &partial{file: f, sum: sha256.New()}
	defer p.close()
	err = p.fill(r, b)
	b.SHA256 = cmp.Or(b.SHA256, p.digest())
	switch {
	case err != nil:
	case p.size < b.Size:
		err = anotherFile("the file has %d bytes instead of the expected %d", p.size, b.Size)
	default:
		err = p.accept(b, slotOf(dir, b.SHA256))
	}
	if err != nil {
		p.remove()
		return Blob{}, err
	}
	return Blob{b.Name, p.size, b.SHA256}, nil
}

// Put stores the content of r.
func (s *Store) Put(r io.Reader) (Blob, error) {
	b, err := take(s.dir, Blob{}, r)
	if err != nil {
		return Blob{}, fmt.Errorf("storing: %w", explain(s.dir, err))
	}
	return b, nil
}

// Receive stores the content of r if it is b, and reports whether b is new in the
// store. It reads r also if the store has b, so that the caller learns whether r is
// intact.
func (s *Store) Receive(b Blob, r io.Reader) (added bool, err error) {
	if err := b.problem(); err != nil {
		return false, err
	}
	if _, err := s.Use(b); err != nil {
		_, err := take(s.dir, b, r)
		return err == nil, explain(s.dir, err)
	}
	_, got, err := regular.Digest(r)
	if err != nil {
		return false, err
	}
	return false, wrong(b, got)
}

// Import stores a copy of the file at path, under its base name.
func (s *Store) Import(path string) (Blob, error) {
	f, err := regular.Follow(path)
	if err != nil {
		return Blob{}, fmt.Errorf("storing: %w", err)
	}
	defer f.Close()
	b, err := s.Put(f)
	b.Name = filepath.Base(path)
	return b, err
}

// Of returns the name, size and digest of the file at path.
func Of(path string) (Blob, error) {
	f, err := regular.Follow(path)
	if err != nil {
		return Blob{}, err
	}
	defer f.Close()
	size, sum, err := regular.Digest(f)
	return Blob{filepath.Base(path), size, sum}, err
}
