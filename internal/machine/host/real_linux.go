package host

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
)

// Disk returns the size of the disk of a path, which need not exist yet, and the bytes
// available to this user.
func Disk(path string) (size, left int64, err error) {
	for path = filepath.Clean(path); ; path = filepath.Dir(path) {
		var s syscall.Statfs_t
		err := syscall.Statfs(path, &s)
		if errors.Is(err, syscall.ENOENT) && path != filepath.Dir(path) {
			continue
		}
		if err != nil {
			return 0, 0, fmt.Errorf("reading the disk of %s: %w", path, err)
		}
		return int64(s.Blocks) * s.Bsize, int64(s.Bavail) * s.Bsize, nil
	}
}

func writable(path string) error {
	const write, search = 2, 1
	return syscall.Access(path, write|search)
}
