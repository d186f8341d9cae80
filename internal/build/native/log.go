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

// logLimit is the size in bytes above which the engine's log is rotated at a start.
const logLimit = 50 << 20

// openLog opens the engine's log and returns its size. It first moves a log over the
// limit aside.
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

// logSince returns the last lines of the engine's log written after offset.
func (e *Engine) logSince(offset int64) []string {
	text, err := os.ReadFile(e.path("engine.log"))
	if err != nil || int64(len(text)) <= offset {
		return nil
	}
	return tail(text[offset:], 20)
}

// runLogged runs a command and writes its output to a file. If the command fails, the
// error includes the last lines.
func (e *Engine) runLogged(ctx context.Context, cmd *exec.Cmd, name string) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// An interrupt instead of a kill lets go and apt-get clean up.
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
		Hint: "fix the error in the log, " + instead,
	}
}

// tail returns the last n lines.
func tail(text []byte, n int) []string {
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return lines[max(0, len(lines)-n):]
}
