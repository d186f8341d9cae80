// Package steplog reads and writes the log of a step. The writer holds a lock on the
// file while the step runs, so a reader knows whether more lines will come. The system
// also releases the lock of a killed writer. The package does not interpret the lines.
package steplog

import (
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
