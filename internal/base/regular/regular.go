// Package regular opens untrusted paths safely. It opens only regular files and reads
// at most the requested number of bytes. A pipe could block forever, a device could
// have side effects, and a link could lead to a file that its creator may not read.
package regular

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Open opens the regular file at path for reading. It rejects a symbolic link at the
// end of the path. Use [Follow] for paths named by the user.
func Open(path string) (*os.File, error) {
	return open(path, opener{os.Lstat, func(path string, flag int, mode fs.FileMode) (*os.File, error) {
		return os.OpenFile(path, flag|syscall.O_NOFOLLOW, mode)
	}, check})
}

// Follow is like [Open] but follows symbolic links.
func Follow(path string) (*os.File, error) { return open(path, opener{os.Stat, os.OpenFile, check}) }

// Read reads a file as opened by [Open]. It fails if the file has more than max bytes.
func Read(path string, max int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	return readAll(f, max)
}

// ReadFollowed reads a file as opened by [Follow]. It fails if the file has more than
// max bytes.
func ReadFollowed(path string, max int64) ([]byte, error) {
	f, err := Follow(path)
	if err != nil {
		return nil, err
	}
	return readAll(f, max)
}

// An opener finds and opens files, and says which may be opened.
type opener struct {
	stat  func(path string) (fs.FileInfo, error)
	open  func(path string, flag int, mode fs.FileMode) (*os.File, error)
	check func(path string, info fs.FileInfo) error
}

// open checks the type of the path first, so it never opens a device. It checks the
// open file again, because the path may have been replaced in between.
func open(path string, by opener) (*os.File, error) {
	info, err := by.stat(path)
	if err == nil {
		err = by.check(path, info)
	}
	if err != nil {
		return nil, err
	}
	f, err := by.open(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, problem(path, fs.ModeSymlink)
	}
	if err != nil {
		return nil, err
	}
	info, err = f.Stat()
	if err == nil {
		err = by.check(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// check rejects anything but a regular file.
func check(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return problem(path, info.Mode().Type())
}

func problem(path string, kind fs.FileMode) error {
	what := "a device"
	switch kind {
	case fs.ModeDir:
		what = "a directory"
	case fs.ModeSymlink:
		what = "a symbolic link"
	case fs.ModeNamedPipe:
		what = "a named pipe"
	case fs.ModeSocket:
		what = "a socket"
	}
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%s, not a regular file", what)}
}

// readAll reads and closes f.
func readAll(f *os.File, max int64) ([]byte, error) {
	defer f.Close()
	data, err := All(f, max)
	return data, at(f.Name(), err)
}

// at adds the path to an error without one.
func at(path string, err error) error {
	if _, named := errors.AsType[*fs.PathError](err); named || err == nil {
		return err
	}
	return &fs.PathError{Op: "read", Path: path, Err: err}
}

// All reads r to its end. It fails if r has more than max bytes.
func All(r io.Reader, max int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, max+1))
	if err == nil && int64(len(data)) > max {
		return nil, tooLarge(max)
	}
	return data, err
}

// Digest reads r to its end and returns its size and sha256.
func Digest(r io.Reader) (size int64, digest string, err error) {
	sum := sha256.New()
	size, err = io.Copy(sum, r)
	return size, hex.EncodeToString(sum.Sum(nil)), err
}

// Sum returns the sha256 of data.
func Sum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// ErrLarger means that a file has more bytes than it may have.
var ErrLarger = errors.New("larger")

func tooLarge(max int64) error { return fmt.Errorf("%w than %d bytes", ErrLarger, max) }

// A Buffer keeps the output of a program, at most Max bytes. It drops what comes later,
// or refuses it if a part of the output is worth nothing. It embeds no [bytes.Buffer],
// whose ReadFrom would pass by the limit.
type Buffer struct {
	Max   int
	Whole bool // refuse more than Max bytes
	kept  []byte
}

// Write implements [io.Writer].
func (b *Buffer) Write(p []byte) (int, error) {
	left := b.Max - len(b.kept)
	if b.Whole && len(p) > left {
		return 0, fmt.Errorf("it printed more than %d bytes", b.Max)
	}
	b.kept = append(b.kept, p[:min(len(p), left)]...)
	return len(p), nil
}

// Bytes returns what was kept.
func (b *Buffer) Bytes() []byte { return b.kept }

// String returns what was kept.
func (b *Buffer) String() string { return string(b.kept) }
