//go:build !linux

package native

import "syscall"

// detached is never called, because Up fails on systems without namespaces.
func detached() *syscall.SysProcAttr { return nil }

func interrupted() *syscall.SysProcAttr { return nil }
