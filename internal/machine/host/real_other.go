//go:build !linux

package host

import "errors"

var errNotLinux = errors.New("only supported on Linux")

// Disk works only on Linux.
func Disk(string) (size, left int64, err error) { return 0, 0, errNotLinux }

func writable(string) error { return errNotLinux }
