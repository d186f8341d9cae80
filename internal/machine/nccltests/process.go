package nccltests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// grace is how long a process group has between SIGTERM and SIGKILL, and how
// long what a dead program left behind may hold its output open.
var grace = 5 * time.Second

// command is a program in a process group of its own, with an environment that
// holds what is stated and nothing else.
type command struct {
	path  string
	args  []string
	env   []string
	dir   string
	limit time.Duration
}

// ended is how a program ended.
type ended struct {
	stdout, stderr string
	exit           int            // status, -1 where a signal ended it
	signal         syscall.Signal // that signal
}

// run runs the program to its end, which is that of its process group. An error
// says why it has none: it cannot be executed, it took too long, it printed too
// much, or the context ended. What it printed until then comes with it.
func (c command) run(ctx context.Context) (ended, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ctx, cancel := context.WithTimeoutCause(ctx, c.limit, fmt.Errorf("%w: it was killed after %v", ErrTimeout, c.limit))
	defer cancel()
	full := func() { stop(fmt.Errorf("it printed more than %d bytes and was killed", maxOutput)) }
	stdout, stderr := &capture{full: full}, &capture{full: full}

	cmd := exec.CommandContext(ctx, c.path, c.args...)
	cmd.Env, cmd.Dir = c.env, c.dir
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	if err := cmd.Start(); err != nil {
		return ended{}, err
	}
	err := wait(ctx, cmd)
	e := ended{stdout: stdout.text(), stderr: stderr.text(), exit: -1}
	if err == nil {
		e.exit = cmd.ProcessState.ExitCode()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			e.signal = status.Signal()
		}
	}
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = fmt.Errorf("%w; %w", cause, err)
	} else if cause != nil {
		err = cause
	}
	return e, err
}

// wait waits for the program and takes what is left of its group with it. A
// process that sleeps in a driver cannot be killed: then it is left, and said.
func wait(ctx context.Context, cmd *exec.Cmd) error {
	done := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		// Not before Wait: until then the number belongs to nobody else.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		done <- err
	}()
	select {
	case err := <-done:
		return broken(err)
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return broken(err)
	case <-time.After(2*grace + time.Second):
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		return fmt.Errorf("process %d did not end even by SIGKILL: it sleeps in a driver", cmd.Process.Pid)
	}
}

// broken passes on what is more than a bad exit status.
func broken(err error) error {
	_, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case exited: // the status says it
	case errors.Is(err, exec.ErrWaitDelay): // what held the output open is dead
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded): // the cause says it
	default:
		return err
	}
	return nil
}

// capture keeps what is written to it, up to a limit.
type capture struct {
	mu   sync.Mutex
	b    bytes.Buffer
	full func()
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := maxOutput - c.b.Len()
	if room < len(p) {
		c.full()
	}
	c.b.Write(p[:min(room, len(p))])
	return len(p), nil
}

func (c *capture) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.String()
}

// lastLines returns the last three lines that say something, on one line, shortened
// to what fits an evidence.
func lastLines(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.Trim(line, "# ") != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return "nothing"
	}
	joined := []rune(strings.Join(lines[max(0, len(lines)-3):], " | "))
	if len(joined) > 600 {
		return "…" + string(joined[len(joined)-600:])
	}
	return string(joined)
}
