// Package steplog reads and writes the log of a step. The writer holds a lock on the
// file while the step runs, so a reader knows whether more lines will come. The system
// also releases the lock of a killed writer. The package does not interpret the lines.
package steplog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Dir holds the logs of a cell, below its directory.
const Dir = "logs"

// Name returns the file name of a step's log.
func Name(step string) string { return strings.ReplaceAll(step, " ", "-") + ".log" }

// Create creates dir and the log of a step in it. It replaces a log of an earlier run
// by a new file, so followers of the old log do not see the new one.
func Create(dir, step string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, Name(step))
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) // without locks in the file system, the log cannot be followed
	return f, nil
}

// Open opens a log below root for reading. It refuses anything but a regular file.
func Open(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe would block
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Running reports whether the step of a log still runs.
func Running(f *os.File) bool {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	}
	return errors.Is(err, syscall.EWOULDBLOCK)
}

// block is the size of the reads backwards from the end.
const block = 64 << 10

// SeekTail seeks to the start of the last n lines of f, or to the start of f if n <= 0.
func SeekTail(f io.ReadSeeker, n int) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	at := int64(0)
	if n > 0 {
		if at, err = tailOffset(f, n, end); err != nil {
			return err
		}
	}
	_, err = f.Seek(at, io.SeekStart)
	return err
}

// tailOffset returns the offset of the last n lines before end.
func tailOffset(f io.ReadSeeker, n int, end int64) (int64, error) {
	for to := end; to > 0; {
		from := max(0, to-block)
		part := make([]byte, to-from)
		if _, err := f.Seek(from, io.SeekStart); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(f, part); err != nil {
			return 0, err
		}
		for i := bytes.LastIndexByte(part, '\n'); i >= 0; i = bytes.LastIndexByte(part[:i], '\n') {
			if from+int64(i) == end-1 {
				continue // the last newline starts no line
			}
			if n--; n == 0 {
				return from + int64(i) + 1, nil
			}
		}
		to = from
	}
	return 0, nil
}

// pause is the interval between reads of a followed log.
const pause = 200 * time.Millisecond

// Follow copies the rest of a log to w, with later additions, until its step ends.
func Follow(ctx context.Context, w io.Writer, f *os.File) error {
	for {
		running := Running(f) // checked first, so the copy below includes the last lines
		if _, err := io.Copy(w, f); err != nil || !running {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
