package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Lock holds path against other processes, and other holders in this one, until
// unlock is called. The file goes with the lock. waiting, if not nil, is called
// once where another holds it.
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

// lock asks again and again instead of blocking, because a blocked flock cannot
// be cancelled.
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

// tryLock returns neither lock nor error while another holds it.
func tryLock(path string) (func(), error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil && current(f, path) {
		return func() {
			_ = os.Remove(path) // before it is free: whoever waits sees that its file is gone
			_ = f.Close()
		}, nil
	}
	_ = f.Close()
	if err == nil || errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return nil, nil
	}
	return nil, fmt.Errorf("locking %s: %w", path, err)
}

// current reports whether path still names f: its last holder has removed it.
func current(f *os.File, path string) bool {
	mine, err1 := f.Stat()
	theirs, err2 := os.Lstat(path)
	return err1 == nil && err2 == nil && os.SameFile(mine, theirs)
}
