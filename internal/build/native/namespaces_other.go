//go:build !linux

package native

import "syscall"

// detached is never called: Up refuses to work where there are no namespaces.
func detached() *syscall.SysProcAttr { return nil }
