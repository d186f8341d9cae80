// Package owned finds files that another user may have made or changed, and programs
// that are not as they were made.
package owned

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Mine returns an error if a file belongs to another user than root and this one.
func Mine(path string, info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", path)
	}
	return nil
}

// Shared reports whether the mode of a file lets other users write to it.
func Shared(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

// check returns an error if another user than root may have changed a file. Others may
// write to a sticky directory such as /tmp, because only owners can remove files there.
func check(path string, info fs.FileInfo) error {
	if err := Mine(path, info); err != nil {
		return err
	}
	if sticky := info.IsDir() && info.Mode()&os.ModeSticky != 0; Shared(info) && !sticky {
		return fmt.Errorf("other users can write to %s", path)
	}
	return nil
}
