// Package native gives builder an engine where there is no Docker: it builds
// the Dagger engine from its pinned Go modules, starts it, stops it and says
// how it is. It asks nothing of that engine: pipelines does, of any engine alike.
//
// The rule is that an engine belongs to a home. Everything it keeps lies under
// HOME/engine, and what upstream hard-wires to places of the host (sockets,
// helper programs, configuration, leases of addresses) is laid over with
// directories of the home inside a mount namespace. So two homes never meet,
// and the host's own files stay as they are. The engine is process 2 of a pid
// namespace: when its supervisor (engine.sh) is gone, the kernel has ended
// whatever the engine had started.
package native

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"builder/internal/base/diag"
)

// Version of the engine and of its client program. It must equal the version
// of the Dagger SDK that connects to it.
const Version = "v0.19.10"

// Options change how an [Engine] is made. The zero value is what users want.
type Options struct {
	// NoInstall forbids to install missing host packages.
	NoInstall bool
	// Idle is how long the engine outlives its last client: 0 means
	// [DefaultIdle], a negative value forever.
	Idle time.Duration
	// From is a home whose programs are taken instead of being made again, where
	// it has them and they can be trusted; "" is none.
	From string
	// Cache is how many bytes the cache may take; 0 leaves it to the engine's own
	// bound, three quarters of the disk.
	Cache int64
}

// DefaultIdle is how long an engine without clients keeps running.
const DefaultIdle = 2 * time.Hour

// Engine is the native engine of one home. Its methods may be called by any
// number of processes at once.
type Engine struct {
	dir  string // HOME/engine
	log  func(format string, args ...any)
	opts Options
}

// Running says how to reach an engine that runs.
type Running struct {
	Address string // unix://…
	Version string
	Started bool // by this call
}

// Status is what can be said about an engine without touching it.
type Status struct {
	Built       bool // the programs of this version are there
	Running     bool
	Current     bool   // what runs is what this tool would start, and answers
	PID         int    // of the supervisor; 0 when not running
	Address     string // "" when not running
	Connections int    // to the engine's socket; a client makes several
	Version     string
	CLI         string
	Log         string // path of the engine's log
	StateDir    string // the cache
	StateBytes  int64
	Since       time.Time
}

// New returns the engine of a home, BUILDER_HOME. Nothing is started or
// written. Progress is told to log, a line per call.
func New(home string, log func(format string, args ...any), opts Options) *Engine {
	opts.Idle = cmp.Or(opts.Idle, DefaultIdle)
	return &Engine{dir: resolve(filepath.Join(home, "engine")), log: log, opts: opts}
}

// resolve returns the one name of a path that need not exist: a home reached
// through a link is the same home.
func resolve(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil || path == filepath.Dir(path) {
		return cmp.Or(real, path)
	}
	return filepath.Join(resolve(filepath.Dir(path)), filepath.Base(path))
}

// Up returns a running engine: in milliseconds when it runs already, after
// building it (once per version), installing what the host lacks and starting
// it otherwise.
func (e *Engine) Up(ctx context.Context) (Running, error) {
	if e.current() {
		return e.running(false), e.touch()
	}
	if err := Supported(); err != nil {
		return Running{}, err
	}
	unlock, err := e.lock(ctx)
	if err != nil {
		return Running{}, err
	}
	defer unlock()
	if e.current() { // another process was faster
		return e.running(false), e.touch()
	}
	if err := e.up(ctx); err != nil {
		return Running{}, noEngine(ctx, fmt.Errorf("bringing the native engine up: %w", err))
	}
	return e.running(true), nil
}

// instead is what to do when there can be no native engine.
const instead = "start Docker or Podman, or name an engine with --engine URL"

// noEngine gives a class to the faults that have none, a full disk say: no
// engine can be had.
func noEngine(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || diag.Worst(err) != diag.OK {
		return err
	}
	return diag.Errorf(diag.NoEngine, "%w", err).WithHint(instead)
}

// up goes from whatever is there to a running engine. The lock is held.
func (e *Engine) up(ctx context.Context) error {
	if err := e.retire(ctx); err != nil {
		return err
	}
	if said := e.diedOfCache(); said != "" {
		e.log("the engine's cache is damaged, it begins with an empty one: %s", said)
		if err := e.forget(); err != nil {
			return err
		}
	}
	tools, err := e.programs(ctx)
	if err != nil {
		return err
	}
	if err := e.come(ctx, tools); err != nil {
		if err := e.comeAgain(ctx, err, func() error { return e.come(ctx, tools) }); err != nil {
			return err
		}
	}
	e.prune()
	return nil
}

// programs makes the engine's programs, unless they are there, and returns the paths of
// those of the host that it runs. The lock is held.
func (e *Engine) programs(ctx context.Context) (tools map[string]string, err error) {
	e.take()
	goTool, err := e.goTool()
	if err != nil {
		return nil, err
	}
	if tools, err = e.tools(ctx); err != nil {
		return nil, err
	}
	return tools, e.build(ctx, goTool)
}

// come starts the engine with these programs of the host; one that does not
// come up leaves nothing behind.
func (e *Engine) come(ctx context.Context, tools map[string]string) error {
	rec, err := e.record()
	if err != nil {
		return err
	}
	if err := e.prepare(tools); err != nil {
		return err
	}
	if err := e.start(ctx, rec); err != nil {
		return errors.Join(err, e.stop(context.WithoutCancel(ctx), time.Second))
	}
	return nil
}

// Down stops the engine, if it runs, and takes back what it had from the
// host: bridge, packet filter rules, address range. The cache stays.
func (e *Engine) Down(ctx context.Context) error {
	if _, alive := e.pid(); !alive && !exists(e.path("state.json")) {
		return nil
	}
	unlock, err := e.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := e.stop(ctx, stopTimeout); err != nil {
		return fmt.Errorf("stopping the native engine: %w", err)
	}
	return nil
}

// Status reports without starting, stopping or waiting for anything.
func (e *Engine) Status(ctx context.Context) (Status, error) {
	s := e.Look()
	var err error
	s.StateBytes, err = DiskUsage(ctx, s.StateDir)
	return s, err
}

// Look is Status without the size of the cache, which takes seconds to add up.
func (e *Engine) Look() Status {
	s := Status{
		Built: exists(e.bin("")), Version: Version, CLI: e.bin("dagger"),
		Log: e.path("engine.log"), StateDir: e.path("state"), Current: e.current(),
	}
	s.PID, s.Running = e.pid()
	if s.Running {
		s.Address, s.Connections = e.address(), e.connections()
		if info, err := os.Stat(e.path("pid")); err == nil {
			s.Since = info.ModTime()
		}
	}
	return s
}

// retire stops an engine that is not the one wanted: of another build, of
// another configuration, or one that does not answer. Nobody's work is taken
// away: with clients at work it is an error. What an engine that died left
// behind is removed.
func (e *Engine) retire(ctx context.Context) error {
	// An engine that was killed loses its connections a moment after its socket.
	for end := time.Now().Add(settle); e.wanted() && !e.answers() && e.connections() > 0 && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
	if pid, alive := e.pid(); alive {
		if e.connections() > 0 {
			return diag.Errorf(diag.NoEngine, "the running engine (process %d) is of another build or configuration, and in use", pid).
				WithHint("wait for the other run, use another BUILDER_HOME, or stop it: builder engine down")
		}
		e.log("stopping the running engine: it is of another build or configuration, or does not answer")
	}
	return e.stop(ctx, stopTimeout)
}

// current reports whether the engine that is wanted runs and answers.
func (e *Engine) current() bool {
	if _, alive := e.pid(); !alive {
		return false
	}
	// An engine at work keeps the bound that it was started with.
	return e.wanted() && (e.readRecord().Cache == e.opts.Cache || e.connections() > 0) && e.answers()
}

// wanted reports whether the engine that was started last is of this build and
// configuration.
func (e *Engine) wanted() bool {
	rec := e.readRecord()
	return rec.Build == buildKey() && rec.Config == configKey()
}

// settle bounds the wait for the connections of an engine that is dying.
const settle = 15 * time.Second

func (e *Engine) address() string { return "unix://" + e.outer() }

func (e *Engine) running(started bool) Running {
	return Running{Address: e.address(), Version: Version, Started: started}
}

// Holds reports whether the engine has pulled the image with a digest such as sha256:…
// and keeps it.
func (e *Engine) Holds(digest string) bool {
	algorithm, hex, _ := strings.Cut(digest, ":")
	return hex != "" && exists(e.path("state", "worker", "content", "blobs", algorithm, hex))
}

// path returns the path of something that the engine keeps.
func (e *Engine) path(elem ...string) string {
	return filepath.Join(append([]string{e.dir}, elem...)...)
}

// id names the home wherever it shares a name space with others: network,
// socket, range of addresses. With a digit appended it fits into the 15
// characters of an interface's name.
func (e *Engine) id() string { return "bd" + hash(e.dir)[:6] }

// Supported says whether this process can start a native engine.
func Supported() error { return supported(runtime.GOOS, os.Geteuid()) }

// supported says whether the native engine can run at all.
func supported(goos string, euid int) error {
	var why string
	switch {
	case goos != "linux":
		why = "the native engine needs Linux, this is " + goos
	case euid != 0:
		why = "the native engine needs root"
	default:
		return nil
	}
	return diag.Errorf(diag.NoEngine, "%s", why).
		WithHint("run as root on Linux, %s", instead)
}

func hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
