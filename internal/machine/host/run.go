package host

import (
	"context"
	"fmt"
	"os/exec"
	"time"
)

// Run runs a program from PATH and returns its stdout and stderr. A missing program is
// [exec.ErrNotFound]. If ctx ends, the error is its cause.
func Run(ctx context.Context, name string, args ...string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
	}
	out := &head{}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = time.Second
	err = cmd.Run()
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
