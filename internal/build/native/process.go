package native

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
)

const (
	startTimeout = 90 * time.Second
	stopTimeout  = 5 * time.Minute  // as in upstream: the engine may have to sync disks
	hungTimeout  = 10 * time.Second // to stop an engine that does not answer
)

//go:embed engine.sh
var supervisor []byte

// A process is the engine of a home as a process of the host, running or not. Whoever
// starts or stops it holds the lock.
type process struct {
	dir    string // HOME/engine
	socket string // see [socketOf]
	cache  int64  // see [Options]
	log    func(format string, args ...any)
}

func (p process) address() string { return "unix://" + p.socket }

// pid returns the supervisor's process ID on the host. It is 0 until the supervisor has
// written it. The supervisor keeps the pid file locked. The file of a dead supervisor
// is not locked, so a reused process ID cannot mislead.
func (p process) pid() (pid int, alive bool) {
	f, err := os.Open(filepath.Join(p.dir, "pid"))
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

// current reports whether an engine with this build and configuration runs and answers.
func (p process) current() bool {
	if _, alive := p.pid(); !alive {
		return false
	}
	// An engine with clients keeps the cache limit of its start.
	last := readRecord(filepath.Join(p.dir, "state.json"))
	return last.wanted() && (last.Cache == p.cache || used(p.socket)) && answers(p.socket)
}

// retire stops an engine that does not answer, or has another build or configuration.
// It returns an error if a client uses that engine. It also removes the leftovers of a
// dead engine.
func (p process) retire(ctx context.Context) error {
	if pid, alive := p.pid(); alive {
		if used(p.socket) {
			return diag.Errorf(diag.NoEngine, "the running engine (process %d) has another build or configuration and is in use", pid).
				WithHint("wait for the other run, use another BUILDER_HOME, or stop it: builder engine down")
		}
		p.log("stopping the running engine: it has another build or configuration, or does not answer")
	}
	return p.stop(ctx, stopTimeout)
}

// start starts the supervisor, detached from this process, with these programs and host
// programs. It waits until the engine answers.
func (p process) start(ctx context.Context, own programs, tools map[string]string) error {
	p.log("starting the engine %s", Version)
	err := errors.Join(
		writeRecord(filepath.Join(p.dir, "state.json"), p.cache), makeMask(p.dir, own.bin("init"), tools["runc"]),
		os.MkdirAll(sockets, 0o700), os.Chmod(sockets, 0o700),
	)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(p.dir, "engine.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := p.command(own.bin("engine"))
	cmd.Stdout, cmd.Stderr = log, log
	if err := launch(cmd, p.dir); err != nil {
		return err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	if err := ready(ctx, p.socket, exited); err != nil && ctx.Err() == nil {
		text, _ := os.ReadFile(log.Name())
		return &diag.Error{
			Code: diag.NoEngine, Err: err, Log: tail(text, 20), LogPath: log.Name(),
			Hint: "fix the error in the log; if it names the engine's cache or its database (bbolt), `builder store gc` empties the cache; or " + instead,
		}
	}
	return ctx.Err()
}

// launch starts the supervisor and passes it the locked pid file.
func launch(cmd *exec.Cmd, dir string) error {
	pid, err := os.OpenFile(filepath.Join(dir, "pid"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer pid.Close() // the supervisor keeps its own descriptor and with it the lock
	// This waits only for readers of the pid.
	if err := flock(pid, syscall.LOCK_EX); err != nil {
		return fmt.Errorf("locking %s: %w", pid.Name(), err)
	}
	cmd.ExtraFiles = []*os.File{pid}
	if err := os.WriteFile(filepath.Join(dir, "engine.sh"), supervisor, 0o644); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return diag.Errorf(diag.NoEngine, "starting the engine: %w", err).
			WithHint("the engine creates pid and mount namespaces: in a container, start the container with --privileged")
	}
	return nil
}

// command returns the command of the supervisor, with the program engine as its argument.
func (p process) command(engine string) *exec.Cmd {
	cmd := exec.Command("/bin/sh", filepath.Join(p.dir, "engine.sh"), engine,
		"--config", "/etc/dagger/engine.toml",
		"--root", filepath.Join(p.dir, "state"),
		"--addr", p.address(),
		"--oci-cni-binary-dir", "/run/dagger/bin",
	)
	cmd.Args = append(cmd.Args, Bound(p.cache)...)
	cmd.Env = append(engineEnv(os.Environ()), "MASK="+filepath.Join(p.dir, "mask"), "SOCKET="+p.socket)
	cmd.Dir = "/"
	cmd.SysProcAttr = detached()
	return cmd
}

// stop ends the supervisor and with it every process of the engine, then removes
// leftovers on the host. It uses force only after the timeout.
func (p process) stop(ctx context.Context, timeout time.Duration) error {
	if err := p.terminate(ctx, timeout); err != nil {
		return fmt.Errorf("stopping the native engine: %w", err)
	}
	return errors.Join(os.RemoveAll(filepath.Join(p.dir, "mask")), os.RemoveAll(filepath.Join(p.dir, "state.json")), os.RemoveAll(p.socket))
}

// terminate sends SIGTERM to the supervisor, and SIGKILL after the timeout.
func (p process) terminate(ctx context.Context, timeout time.Duration) error {
	for start, sent := time.Now(), syscall.Signal(0); ; {
		pid, alive := p.pid()
		if !alive {
			return nil
		}
		signal, say := syscall.SIGTERM, "stopping the engine: it may have to write its cache to disk"
		if time.Since(start) >= timeout {
			signal, say = syscall.SIGKILL, "the engine did not stop in time: killing it"
		}
		if pid > 1 && signal != sent {
			p.log("%s", say)
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

// A record is the set of parameters an engine was started with.
type record struct {
	Build  string `json:"build"`
	Config string `json:"config"`
	Cache  int64  `json:"cache"` // see [Options]
}

// wanted reports whether the engine has this build and configuration.
func (r record) wanted() bool { return r.Build == buildKey() && r.Config == configKey() }

// readRecord returns the record in a file, or an empty one.
func readRecord(file string) record {
	var rec record
	if text, err := os.ReadFile(file); err == nil {
		_ = json.Unmarshal(text, &rec) // an incomplete record matches no wanted engine
	}
	return rec
}

// writeRecord saves the parameters of the next start, which has this limit of the cache.
func writeRecord(file string, cache int64) error {
	text, err := json.MarshalIndent(record{Build: buildKey(), Config: configKey(), Cache: cache}, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(file, append(text, '\n'))
}

func flock(f *os.File, how int) error { return syscall.Flock(int(f.Fd()), how) }
