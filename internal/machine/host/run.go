package host

import (
	"context"
	"fmt"
	"os/exec"
	"time"
)

// Run runs a program and returns its stdout and stderr. It searches PATH, and then the
// usual directories, because the PATH of a user often lacks ldconfig. A missing program is
// [exec.ErrNotFound]. If ctx ends, the error is its cause.
func Run(ctx context.Context, name string, args ...string) (string, error) {
	h := This()
	path, found := h.Program(name, ProgramDirs(h.Path))
	if !found {
		return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
	}
	out := &head{}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil {
		return "", cause
	}
	return string(out.text), err
}

// head keeps the first 4 MiB written to it.
type head struct{ text []byte }

func (h *head) Write(p []byte) (int, error) {
	const limit = 4 << 20
	h.text = append(h.text, p[:min(len(p), limit-len(h.text))]...)
	return len(p), nil
}
