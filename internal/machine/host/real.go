package host

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"builder/internal/base/regular"
)

// Time limits for operations that may hang.
const (
	programTime = time.Minute // nvidia-smi takes some seconds with eight GPUs, and hangs if the driver does
	dialTime    = 3 * time.Second
)

// This returns the host of this process.
func This() Host {
	return Host{
		FS: os.DirFS("/"), Path: os.Getenv("PATH"),
		Run: Run, Dial: dial, Disk: DiskOf, Writable: writable,
	}
}

func dial(ctx context.Context, network, address string) error {
	conn, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Run runs a program and returns its stdout and stderr. It searches PATH, and then the
// usual directories, because the PATH of a user often lacks ldconfig. A missing program is
// [exec.ErrNotFound]. If ctx or programTime ends, the error is the cause.
func Run(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, programTime, fmt.Errorf("%s did not end within %v", name, programTime))
	defer cancel()
	h := This()
	path, found := h.Program(name, ProgramDirs(h.Path))
	if !found {
		return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
	}
	out := &regular.Buffer{Max: 4 << 20}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil {
		return "", cause
	}
	return out.String(), err
}
