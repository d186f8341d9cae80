package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Lock locks path against other processes and other callers in this process until
// unlock is called. Unlocking removes the file. Lock calls waiting, if not nil, once if
// another holds the lock.
func Lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	return poll(ctx, waiting, func() (func(), error) { return tryLock(path) })
}

// poll calls try until it returns a release or an error, because a blocked flock cannot
// be cancelled.
func poll(ctx context.Context, waiting func(), try func() (func(), error)) (release func(), err error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		release, err := try()
		if release != nil || err != nil {
			return release, err
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// tryLock returns nil and no error while another holds the lock.
func tryLock(path string) (func(), error) {
	f, err := flock(path, syscall.LOCK_EX)
	switch {
	case f == nil || err != nil:
		return nil, err
	case !current(f, path):
		return nil, f.Close()
	}
	return func() {
		_ = os.Remove(path) // before unlocking, so that waiting processes see that their file is gone
		_ = f.Close()
	}, nil
}

// flock returns a locked file, or nil and no error while another holds the lock.
func flock(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return nil, nil
	}
	return nil, fmt.Errorf("locking %s: %w", path, err)
}

// current reports whether path still names f. The last holder of the lock removes the
// file.
func current(f *os.File, path string) bool {
	mine, err1 := f.Stat()
	theirs, err2 := os.Lstat(path)
	return err1 == nil && err2 == nil && os.SameFile(mine, theirs)
}

// users is the lock file of all readers of blobs. It is never removed.
const users = "users"

// Hold registers this process as a user of the store: no collection starts before
// release is called. Any number of processes may hold the store. Hold calls waiting, if
// not nil, once if a collection is running.
func (s *Store) Hold(ctx context.Context, waiting func()) (release func(), err error) {
	release, err = lockUsers(ctx, s.dir, syscall.LOCK_SH, waiting)
	if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
		return func() {}, nil // a read-only store is never collected
	}
	return release, err
}

// Alone waits until no process uses the store, then excludes all others until release
// is called.
func (s *Store) Alone(ctx context.Context, waiting func()) (release func(), err error) {
	return lockUsers(ctx, s.dir, syscall.LOCK_EX, waiting)
}

// TryAlone is like [Store.Alone] without the wait. It returns nil and no error while another
// process uses the store.
func (s *Store) TryAlone() (release func(), err error) { return tryUsers(s.dir, syscall.LOCK_EX) }

func lockUsers(ctx context.Context, dir string, how int, waiting func()) (release func(), err error) {
	return poll(ctx, waiting, func() (func(), error) { return tryUsers(dir, how) })
}

func tryUsers(dir string, how int) (release func(), err error) {
	f, err := flock(filepath.Join(dir, users), how)
	if f == nil || err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}
