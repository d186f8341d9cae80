package host

import (
	"fmt"
	"syscall"
)

func free(path string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, fmt.Errorf("asking for the free disk of %s: %w", path, err)
	}
	return int64(s.Bavail) * s.Bsize, nil
}

func writable(path string) error {
	const write, search = 2, 1
	return syscall.Access(path, write|search)
}
