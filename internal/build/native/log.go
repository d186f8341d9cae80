package native

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"builder/internal/base/diag"
)

// runLogged runs a command and writes its output to a file. If the command fails, the
// error includes the last lines.
func runLogged(ctx context.Context, cmd *exec.Cmd, to string) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// An interrupt instead of a kill lets go and apt-get clean up.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	err := cmd.Run()
	if werr := os.WriteFile(to, out.Bytes(), 0o644); err == nil {
		return werr
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &diag.Error{
		Code: diag.NoEngine, Err: fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err),
		Log: tail(out.Bytes(), 20), LogPath: to,
		Hint: "fix the error in the log (without a network, see docs/offline.md), " + instead,
	}
}

// tail returns the last n lines.
func tail(text []byte, n int) []string {
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return lines[max(0, len(lines)-n):]
}
