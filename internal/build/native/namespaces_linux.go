package native

import "syscall"

// detached starts a process in a session, a mount and a pid namespace of its
// own: no signal of a terminal reaches it, and it survives its parent.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
}
