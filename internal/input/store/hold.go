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

// users is the lock file of all readers of blobs. It is never removed.
const users = "users"

// Hold registers this process as a user of the store: no collection starts before
// release is called. Any number of processes may hold the store. Hold calls waiting, if
// not nil, once if a collection is running.
func (s *Store) Hold(ctx context.Context, waiting func()) (release func(), err error) {
	release, err = s.flock(ctx, syscall.LOCK_SH, waiting)
	if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
		return func() {}, nil // a read-only store is never collected
	}
	return release, err
}

// Alone waits until no process uses the store, then excludes all others until release
// is called.
func (s *Store) Alone(ctx context.Context, waiting func()) (release func(), err error) {
	return s.flock(ctx, syscall.LOCK_EX, waiting)
}

// flock polls, because a blocked flock cannot be cancelled.
func (s *Store) flock(ctx context.Context, how int, waiting func()) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(s.dir, users), os.O_RDONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the store: %w", err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking the store: %w", err), f.Close())
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
