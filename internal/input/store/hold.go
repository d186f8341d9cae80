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

// users is the file that everybody locks who reads blobs, and nobody removes.
const users = "users"

// Hold says that this process uses the store: nothing is collected before
// release is called. Any number of processes may hold it. waiting, if not nil, is
// called once where a collection is under way.
func (s *Store) Hold(ctx context.Context, waiting func()) (release func(), err error) {
	release, err = s.flock(ctx, syscall.LOCK_SH, waiting)
	if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
		return func() {}, nil // who cannot write here cannot collect here
	}
	return release, err
}

// Alone waits until nobody uses the store, and keeps everybody away until release
// is called.
func (s *Store) Alone(ctx context.Context, waiting func()) (release func(), err error) {
	return s.flock(ctx, syscall.LOCK_EX, waiting)
}

// flock asks again and again, because a blocked flock cannot be cancelled.
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
