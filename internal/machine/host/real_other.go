//go:build !linux

package host

import "errors"

var errNotLinux = errors.New("only supported on Linux")

// DiskOf works only on Linux.
func DiskOf(string) (Disk, error) { return Disk{}, errNotLinux }

func writable(string) error { return errNotLinux }
