package host

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"builder/internal/base/regular"
)

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
