package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Lock locks path against other processes and other callers in this process until
// unlock is called. Unlocking removes the file. Lock calls waiting, if not nil, once if
// another holds the lock.
func Lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	unlock, err = tryLock(path)
	if unlock != nil || err != nil {
		return unlock, err
	}
	if waiting != nil {
		waiting()
	}
	return lock(ctx, path)
}

// lock polls, because a blocked flock cannot be cancelled.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		unlock, err := tryLock(path)
		if unlock != nil || err != nil {
			return unlock, err
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
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil && current(f, path) {
		return func() {
			_ = os.Remove(path) // before unlocking, so that waiting processes see that their file is gone
			_ = f.Close()
		}, nil
	}
	_ = f.Close()
	if err == nil || errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
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
