package native

import "syscall"

// detached gives a process its own session, mount namespace and pid namespace. No
// terminal signal reaches it, and it outlives its parent.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
}

// interrupted interrupts a process when this one has ended, killed or not.
func interrupted() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}
}
