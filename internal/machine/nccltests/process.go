package nccltests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"builder/internal/machine/guest"
)

// grace is the time between SIGTERM and SIGKILL for a process group. It is also how
// long children of a dead program may keep its output open.
var grace = 5 * time.Second

// command is a program to run in its own process group, with exactly this environment.
type command struct {
	guest   guest.Guest
	path    string
	args    []string
	env     []string
	dir     string
	read    []string // what it may read beside the host's system
	write   []string
	network bool
	limit   time.Duration
}

// ended is the result of a finished program.
type ended struct {
	stdout, stderr string
	exit           int            // exit status, -1 after a signal
	signal         syscall.Signal // signal that ended it, or 0
}

// run runs the program until its process group ends. It returns an error if the program
// cannot be executed, takes too long, prints too much, or ctx ends. The output so far
// comes with the error.
func (c command) run(ctx context.Context) (ended, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ctx, cancel := context.WithTimeoutCause(ctx, c.limit, fmt.Errorf("%w: killed after %v", ErrTimeout, c.limit))
	defer cancel()
	full := func() { stop(fmt.Errorf("it printed more than %d bytes and was killed", maxOutput)) }
	stdout, stderr := &capture{full: full}, &capture{full: full}

	cmd, err := c.guest.Command(ctx, guest.Program{
		Path: c.path, Args: c.args, Env: c.env, Dir: c.dir, Read: c.read, Write: c.write, Network: c.network,
	})
	if err != nil {
		return ended{}, err
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	if err := cmd.Start(); err != nil {
		return ended{}, err
	}
	err = wait(ctx, cmd)
	e := ended{stdout: stdout.text(), stderr: stderr.text(), exit: -1}
	if err == nil {
		e.exit = cmd.ProcessState.ExitCode()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			e.signal = status.Signal()
		} else if e.signal = c.guest.Signal(e.exit); e.signal != 0 {
			e.exit = -1
		}
	}
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = fmt.Errorf("%w; %w", cause, err)
	} else if cause != nil {
		err = cause
	}
	return e, err
}

// wait waits for the program and kills the rest of its process group. A process asleep
// in a driver cannot be killed. wait then leaves it and returns an error.
func wait(ctx context.Context, cmd *exec.Cmd) error {
	done := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		// The kill follows Wait, because it would end the program too. The group ID
		// cannot be reused while the group has members.
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
		return fmt.Errorf("process %d did not end after SIGKILL: it waits in a driver", cmd.Process.Pid)
	}
}

// broken returns errors other than a bad exit status.
func broken(err error) error {
	_, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case exited: // ended has the status
	case errors.Is(err, exec.ErrWaitDelay): // the process with the output open is dead
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded): // run reports the cause
	default:
		return err
	}
	return nil
}

// maxOutput bounds each output of a program, in bytes. The longest real one has some
// hundred lines.
const maxOutput = 16 << 20

// capture keeps the bytes written to it, up to maxOutput.
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

// banner matches the lines with which Open MPI ends a failed job, whatever the reason is.
var banner = regexp.MustCompile(`^-{20,}$|^(prterun|mpirun) (detected|noticed)|^thus causing the job|^Process name: +\[|^Exit code: +\d`)

// lastLines returns the last three nonempty lines as one line of at most 600
// characters.
func lastLines(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.Trim(line, "# ") != "" && !banner.MatchString(line) {
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
