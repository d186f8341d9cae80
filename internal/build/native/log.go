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

// logLimit is how long the engine's log may be when it is started.
const logLimit = 50 << 20

// openLog opens the engine's log and tells how long it is. A log over the
// limit is put aside first.
func (e *Engine) openLog(limit int64) (*os.File, int64, error) {
	path := e.path("engine.log")
	if info, err := os.Stat(path); err == nil && info.Size() > limit {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, 0, err
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// logSince returns the end of the engine's log, less what was there before.
func (e *Engine) logSince(offset int64) []string {
	text, err := os.ReadFile(e.path("engine.log"))
	if err != nil || int64(len(text)) <= offset {
		return nil
	}
	return tail(text[offset:], 20)
}

// runLogged runs a command whose output users see only when it fails: it goes
// to a file, and the end of it into the error.
func (e *Engine) runLogged(ctx context.Context, cmd *exec.Cmd, name string) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// Interrupted, not killed: go and apt-get clear up after themselves.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	err := cmd.Run()
	if werr := os.WriteFile(e.path(name), out.Bytes(), 0o644); err == nil {
		return werr
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &diag.Error{
		Code: diag.NoEngine, Err: fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err),
		Log: tail(out.Bytes(), 20), LogPath: e.path(name),
		Hint: "mend what the log says, " + instead,
	}
}

// tail returns the last n lines.
func tail(text []byte, n int) []string {
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return lines[max(0, len(lines)-n):]
}
