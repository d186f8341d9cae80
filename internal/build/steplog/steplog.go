// Package steplog is the log of a step: a file that its writer holds locked while
// the step runs. Whoever reads it knows by that whether more will come: the system
// takes the lock from a writer that was killed too. What a line says is not looked
// at here.
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

// Name is the file of a step's log.
func Name(step string) string { return strings.ReplaceAll(step, " ", "-") + ".log" }

// Create begins the log of a step in dir, which is made. One of an earlier run is
// replaced and not written over: who follows it is not told of this one.
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
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) // a file system without locks has logs that cannot be followed
	return f, nil
}

// Open opens a log below root for reading. What is no regular file is an error.
func Open(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for ever
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

// Running reports whether the step of a log still writes it.
func Running(f *os.File) bool {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	}
	return errors.Is(err, syscall.EWOULDBLOCK)
}

// block is how much is read at a time on the way back from the end.
const block = 64 << 10

// SeekTail leaves f in front of its last n lines; 0 or less is all of them.
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

// tailOffset finds where the last n lines before end begin.
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
				continue // the end of the last line begins none
			}
			if n--; n == 0 {
				return from + int64(i) + 1, nil
			}
		}
		to = from
	}
	return 0, nil
}

// pause is how often a log that is followed is looked at.
const pause = 200 * time.Millisecond

// Follow copies the rest of a log to w, and what is added to it until its step has
// ended.
func Follow(ctx context.Context, w io.Writer, f *os.File) error {
	for {
		running := Running(f) // asked before: what was written until then is copied below
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
