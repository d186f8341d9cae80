package host

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
)

// kinds names file systems by their number (statfs(2)). FUSE is also virtiofs, and many
// file systems of users.
var kinds = map[int64]string{
	0xef53: "ext4", 0x58465342: "xfs", 0x9123683e: "btrfs", 0x2fc12fc1: "zfs",
	0x01021994: "tmpfs", 0x858458f6: "ramfs", 0x794c7630: "overlay", 0x65735546: "fuse",
	0x6969: "nfs", 0xff534d42: "cifs", 0xfe534d42: "smb3", 0x0bd00bd0: "lustre", 0x47504653: "gpfs",
	0x19830326: "beegfs", 0x00c36400: "ceph", 0x01021997: "9p",
}

// DiskOf describes the disk of a path, which need not exist yet.
func DiskOf(path string) (Disk, error) {
	for path = filepath.Clean(path); ; path = filepath.Dir(path) {
		var s syscall.Statfs_t
		err := syscall.Statfs(path, &s)
		if errors.Is(err, syscall.ENOENT) && path != filepath.Dir(path) {
			continue
		}
		if err != nil {
			return Disk{}, fmt.Errorf("reading the disk of %s: %w", path, err)
		}
		const noExec = 8 // ST_NOEXEC
		return Disk{
			Size: int64(s.Blocks) * s.Bsize, Free: int64(s.Bavail) * s.Bsize,
			Kind: cmp.Or(kinds[s.Type&0xffffffff], fmt.Sprintf("%#x", s.Type)), NoExec: s.Flags&noExec != 0,
		}, nil
	}
}

func writable(path string) error {
	const write, search = 2, 1
	return syscall.Access(path, write|search)
}
