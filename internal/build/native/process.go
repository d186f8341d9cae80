package native

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"builder/internal/base/diag"
	"builder/internal/input/store"
)

const (
	startTimeout = 90 * time.Second
	stopTimeout  = 5 * time.Minute // as in upstream: the engine may have to sync disks
)

//go:embed engine.sh
var supervisor []byte

// lock waits for other processes that start or stop this home's engine.
func (e *Engine) lock(ctx context.Context) (unlock func(), err error) {
	if err = os.MkdirAll(e.dir, 0o700); err == nil {
		unlock, err = store.Lock(ctx, e.path("lock"), func() { e.log("waiting for another run to build, start or stop the engine") })
	}
	if err != nil {
		err = noEngine(ctx, fmt.Errorf("locking the native engine: %w", err))
	}
	return unlock, err
}

// pid returns the supervisor's process ID on the host. It is 0 until the supervisor has
// written it. The supervisor keeps the pid file locked. The file of a dead supervisor
// is not locked, so a reused process ID cannot mislead.
func (e *Engine) pid() (pid int, alive bool) {
	f, err := os.Open(e.path("pid"))
	if err != nil {
		return 0, false
	}
	defer f.Close()
	if flock(f, syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return 0, false
	}
	text, _ := io.ReadAll(f)
	pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	return pid, true
}

// start starts the supervisor, detached from this process, with these host programs. It
// waits until the engine answers.
func (e *Engine) start(ctx context.Context, tools map[string]string) error {
	e.log("starting the engine %s", Version)
	if err := errors.Join(e.record(), e.prepare(tools), os.MkdirAll(sockets, 0o700), os.Chmod(sockets, 0o700)); err != nil {
		return err
	}
	log, err := os.Create(e.path("engine.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := e.command()
	cmd.Stdout, cmd.Stderr = log, log
	if err := e.launch(cmd); err != nil {
		return err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	if err := ready(ctx, e.socket(), exited); err != nil && ctx.Err() == nil {
		text, _ := os.ReadFile(log.Name())
		return &diag.Error{
			Code: diag.NoEngine, Err: err, Log: tail(text, 20), LogPath: log.Name(),
			Hint: "fix the error in the log; if it names the engine's cache or its database (bbolt), `builder store gc` empties the cache; or " + instead,
		}
	}
	return ctx.Err()
}

// launch starts the supervisor and passes it the locked pid file.
func (e *Engine) launch(cmd *exec.Cmd) error {
	pid, err := os.OpenFile(e.path("pid"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer pid.Close() // the supervisor keeps its own descriptor and with it the lock
	// This waits only for readers of the pid.
	if err := flock(pid, syscall.LOCK_EX); err != nil {
		return fmt.Errorf("locking %s: %w", pid.Name(), err)
	}
	cmd.ExtraFiles = []*os.File{pid}
	if err := os.WriteFile(e.path("engine.sh"), supervisor, 0o644); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return diag.Errorf(diag.NoEngine, "starting the engine: %w", err).
			WithHint("the engine creates pid and mount namespaces: in a container, start the container with --privileged")
	}
	return nil
}

// command returns the command of the supervisor, with the engine as its argument.
func (e *Engine) command() *exec.Cmd {
	cmd := exec.Command("/bin/sh", e.path("engine.sh"), e.bin("engine"),
		"--config", "/etc/dagger/engine.toml",
		"--root", e.path("state"),
		"--addr", e.address(),
		"--oci-cni-binary-dir", "/run/dagger/bin",
	)
	cmd.Args = append(cmd.Args, Bound(e.opts.Cache)...)
	cmd.Env = append(engineEnv(os.Environ()), "MASK="+e.path("mask"), "SOCKET="+e.socket())
	cmd.Dir = "/"
	cmd.SysProcAttr = detached()
	return cmd
}

// ready waits until the engine answers.
func ready(ctx context.Context, socket string, exited <-chan error) error {
	deadline := time.Now().Add(startTimeout)
	for !answers(socket) {
		select {
		case err := <-exited:
			if err == nil {
				err = errors.New("exit status 0")
			}
			return fmt.Errorf("the engine ended during its start: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the engine did not answer within %s", startTimeout)
		}
	}
	return nil
}

// stop ends the supervisor and with it every process of the engine, then removes
// leftovers on the host. It uses force only after the timeout.
func (e *Engine) stop(ctx context.Context, timeout time.Duration) error {
	if err := e.terminate(ctx, timeout); err != nil {
		return fmt.Errorf("stopping the native engine: %w", err)
	}
	return errors.Join(os.RemoveAll(e.path("mask")), os.RemoveAll(e.path("state.json")), os.RemoveAll(e.socket()))
}

// terminate sends SIGTERM to the supervisor, and SIGKILL after the timeout.
func (e *Engine) terminate(ctx context.Context, timeout time.Duration) error {
	for start, sent := time.Now(), syscall.Signal(0); ; {
		pid, alive := e.pid()
		if !alive {
			return nil
		}
		signal, say := syscall.SIGTERM, "stopping the engine: it may have to write its cache to disk"
		if time.Since(start) >= timeout {
			signal, say = syscall.SIGKILL, "the engine did not stop in time: killing it"
		}
		if pid > 1 && signal != sent {
			e.log("%s", say)
			if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("ending process %d: %w", pid, err)
			}
			sent = signal
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// answers reports whether a socket accepts connections.
func answers(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// connections counts the connections to a socket. One line of the kernel's list is the
// listener.
func connections(socket string) int {
	text, _ := os.ReadFile("/proc/net/unix")
	return max(0, strings.Count(string(text), " "+socket+"\n")-1)
}

// settle limits the wait for the connections of a dying engine to close.
const settle = 15 * time.Second

// used reports whether a client uses the engine. A client keeps its connections while it
// works. The connection of [answers] disappears after a moment, and those of a
// killed engine after its socket.
func (e *Engine) used() bool {
	wait := time.Second
	if !answers(e.socket()) {
		wait = settle
	}
	for end := time.Now().Add(wait); connections(e.socket()) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return true
		}
	}
	return false
}

// DiskUsage returns the size on disk of a directory in bytes, 0 if it does not exist. du
// counts a file with several names once: layers share files.
func DiskUsage(ctx context.Context, dir string) (int64, error) {
	if !exists(dir) {
		return 0, nil
	}
	out, err := exec.CommandContext(ctx, "du", "-sk", dir).Output()
	var kib int64
	if _, unread := fmt.Sscan(string(out), &kib); unread != nil {
		return 0, fmt.Errorf("asking du for the size of %s: %w", dir, errors.Join(err, unread))
	}
	return kib << 10, nil // du fails if files disappear meanwhile, and counts the others
}

func flock(f *os.File, how int) error { return syscall.Flock(int(f.Fd()), how) }
