package guest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// grace is the usual time between SIGTERM and SIGKILL for a process group. It is also how
// long children of a dead program may keep its output open.
const grace = 5 * time.Second

// An Output keeps what a program prints, at most Max bytes.
type Output struct {
	Max  int
	mu   sync.Mutex
	b    bytes.Buffer
	full func(max int)
}

// Write implements [io.Writer].
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	room := o.Max - o.b.Len()
	if room < len(p) {
		o.full(o.Max)
	}
	o.b.Write(p[:min(room, len(p))])
	return len(p), nil
}

// String returns what was printed so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// An End is how a program ended.
type End struct {
	Exit   int            // exit status; -1 if there is none
	Signal syscall.Signal // signal that ended it, or 0
}

// Run runs a program as a guest until its process group ends. It returns an error if the
// program cannot be executed, prints more than an output keeps, or ctx ends; the outputs
// have what it printed until then.
func (g Guest) Run(ctx context.Context, p Program, stdout, stderr *Output) (End, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	full := func(max int) { stop(fmt.Errorf("it printed more than %d bytes and was killed", max)) }
	stdout.full, stderr.full = full, full
	cmd, err := g.Command(ctx, p)
	if err != nil {
		return End{Exit: -1}, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Stdin, stdout, stderr
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = cmp.Or(p.Grace, grace)
	if err := cmd.Start(); err != nil {
		return End{Exit: -1}, err
	}
	end := End{Exit: -1}
	if err = wait(ctx, cmd); err == nil {
		end = g.endOf(cmd)
	}
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = fmt.Errorf("%w; %w", cause, err)
	} else if cause != nil {
		err = cause
	}
	return end, err
}

// endOf returns how a program ended. Bubblewrap puts the signal that ended its program
// into its own exit status.
func (g Guest) endOf(cmd *exec.Cmd) End {
	end := End{Exit: cmd.ProcessState.ExitCode()}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		end.Signal = status.Signal()
	} else if g.kind == contained && end.Exit > 128 && end.Exit <= 128+64 {
		end.Signal = syscall.Signal(end.Exit - 128)
	}
	return end
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
	case <-time.After(2*cmd.WaitDelay + time.Second):
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		return fmt.Errorf("process %d did not end after SIGKILL: it waits in a driver", cmd.Process.Pid)
	}
}

// broken returns errors other than a bad exit status.
func broken(err error) error {
	_, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case exited: // the End has the status
	case errors.Is(err, exec.ErrWaitDelay): // the process with the output open is dead
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded): // Run reports the cause
	default:
		return err
	}
	return nil
}
