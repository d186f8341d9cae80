package host

import (
	"context"
	"fmt"
	"os/exec"
	"time"
)

// Run runs a program of PATH and returns what it printed to both outputs. An absent
// one is [exec.ErrNotFound]; where the context ended it, the error is the cause.
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

// head keeps the beginning of what is written to it.
type head struct{ text []byte }

func (h *head) Write(p []byte) (int, error) {
	const limit = 4 << 20
	h.text = append(h.text, p[:min(len(p), limit-len(h.text))]...)
	return len(p), nil
}
