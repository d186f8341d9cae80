// Package native runs the engine without Docker. It builds the Dagger engine from its
// pinned Go modules, starts it, stops it and reports its state. It does not use the
// engine: pipelines does, through any engine.
//
// An engine belongs to a home. All its data is in HOME/engine. Upstream hard-wires some
// places on the host: sockets, helper programs, configuration and address leases. In
// the engine's mount namespace, directories of the home cover them. So two homes do not
// conflict, and the host's own files stay unchanged. Only the socket for clients is in
// /run/builder, which is closed to other users. The engine is process 2 of a pid
// namespace. When its supervisor (engine.sh) ends, the kernel ends every process the
// engine started.
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

// Version is the version of the engine and its client program. It must equal the
// version of the Dagger SDK.
const Version = "v0.19.10"

// Options configure an [Engine]. The zero value is right for normal use.
type Options struct {
	// NoInstall forbids the installation of missing host packages.
	NoInstall bool
	// Image returns the path of an image made by [Engine.Image], after a check of its
	// digest. Its programs are copied instead of built. nil means none.
	Image func(context.Context) (path string, err error)
	// Cache is the limit of the cache in bytes. 0 means the engine's own limit, three
	// quarters of the disk.
	Cache int64
}

// Engine is the native engine of one home. Any number of processes may call its methods
// at once.
type Engine struct {
	dir  string // HOME/engine
	log  func(format string, args ...any)
	opts Options
}

// Status is the state of an engine.
type Status struct {
	Built    bool // the programs of this version exist
	Running  bool
	Current  bool   // the running engine answers and has this build and configuration
	PID      int    // supervisor's process ID; 0 if not running
	Address  string // "" if not running
	CLI      string
	Log      string // path of the engine's log
	StateDir string // path of the cache
}

// New returns the engine of home, the BUILDER_HOME. It starts and writes nothing. Later
// calls report progress to log, one line per call.
func New(home string, log func(format string, args ...any), opts Options) *Engine {
	return &Engine{dir: resolve(filepath.Join(home, "engine")), log: log, opts: opts}
}

// resolve returns the canonical form of a path that need not exist. A home reached
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

// Up returns the address of the running engine. This takes milliseconds if it already
// runs. Otherwise Up builds the engine (once per version), installs missing host packages
// and starts it.
func (e *Engine) Up(ctx context.Context) (address string, err error) {
	if e.current() {
		return e.address(), nil
	}
	if err := Supported(); err != nil {
		return "", err
	}
	unlock, err := e.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	if e.current() { // another process started it
		return e.address(), nil
	}
	if err := e.up(ctx); err != nil {
		return "", noEngine(ctx, fmt.Errorf("starting the native engine: %w", err))
	}
	e.log("engine %s started at %s", Version, e.address())
	return e.address(), nil
}

// instead is the hint for hosts that cannot run a native engine.
const instead = "start Docker or Podman, or name an engine with --engine URL"

// noEngine gives errors without a class, such as a full disk, the class diag.NoEngine.
func noEngine(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || diag.Worst(err) != diag.OK {
		return err
	}
	return diag.Errorf(diag.NoEngine, "%w", err).WithHint(instead)
}

// up replaces any old engine by a running one. The caller holds the lock.
func (e *Engine) up(ctx context.Context) error {
	if err := e.retire(ctx); err != nil {
		return err
	}
	tools, err := e.programs(ctx)
	if err != nil {
		return err
	}
	if err := e.start(ctx, tools); err != nil {
		return errors.Join(err, e.stop(context.WithoutCancel(ctx), time.Second)) // leaves nothing behind
	}
	e.prune()
	return nil
}

// programs builds the engine's programs if they are missing, and returns the paths of
// the host programs it runs. The caller holds the lock.
func (e *Engine) programs(ctx context.Context) (tools map[string]string, err error) {
	if err := e.take(ctx); err != nil {
		return nil, err
	}
	goTool, err := e.goTool()
	if err != nil {
		return nil, err
	}
	if tools, err = e.tools(ctx); err != nil {
		return nil, err
	}
	return tools, e.build(ctx, goTool)
}

// hungTimeout is the time a hanging engine gets to stop.
const hungTimeout = 10 * time.Second

// Restart stops an engine that does not answer, and starts it. Builds of other processes
// on the engine end and start again there.
func (e *Engine) Restart(ctx context.Context, why error) error {
	e.log("the engine does not answer, restarting it: %v", why)
	unlock, err := e.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := e.stop(ctx, hungTimeout); err != nil {
		return err
	}
	return noEngine(ctx, e.up(ctx))
}

// Down stops the engine if it runs, and leaves nothing of it on the host but its home.
// The cache stays.
func (e *Engine) Down(ctx context.Context) error {
	if _, alive := e.pid(); !alive && !exists(e.path("state.json")) {
		return nil
	}
	unlock, err := e.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return e.stop(ctx, stopTimeout)
}

// Look reports the state without starting, stopping or waiting for the engine.
func (e *Engine) Look() Status {
	s := Status{
		Built: exists(e.bin("")), CLI: e.bin("dagger"),
		Log: e.path("engine.log"), StateDir: e.path("state"),
		Current: e.current(),
	}
	if s.PID, s.Running = e.pid(); s.Running {
		s.Address = e.address()
	}
	return s
}

// retire stops an engine that does not answer, or has another build or configuration.
// It returns an error if a client uses that engine. It also removes the leftovers of a
// dead engine.
func (e *Engine) retire(ctx context.Context) error {
	if pid, alive := e.pid(); alive {
		if e.used() {
			return diag.Errorf(diag.NoEngine, "the running engine (process %d) has another build or configuration and is in use", pid).
				WithHint("wait for the other run, use another BUILDER_HOME, or stop it: builder engine down")
		}
		e.log("stopping the running engine: it has another build or configuration, or does not answer")
	}
	return e.stop(ctx, stopTimeout)
}

// current reports whether an engine with this build and configuration runs and answers.
func (e *Engine) current() bool {
	if _, alive := e.pid(); !alive {
		return false
	}
	// An engine with clients keeps the cache limit of its start.
	return e.wanted() && (e.readRecord().Cache == e.opts.Cache || e.used()) && answers(e.socket())
}

// wanted reports whether the last started engine has this build and configuration.
func (e *Engine) wanted() bool {
	rec := e.readRecord()
	return rec.Build == buildKey() && rec.Config == configKey()
}

func (e *Engine) address() string { return "unix://" + e.socket() }

// Holds reports whether the engine's cache has the image with a digest such as
// sha256:….
func (e *Engine) Holds(digest string) bool {
	algorithm, hex, _ := strings.Cut(digest, ":")
	return hex != "" && exists(e.path("state", "worker", "content", "blobs", algorithm, hex))
}

// path returns a path below the engine's directory.
func (e *Engine) path(elem ...string) string {
	return filepath.Join(append([]string{e.dir}, elem...)...)
}

// sockets is the directory of the sockets of all homes. A path in a home may be too long
// for a socket.
const sockets = "/run/builder"

// socket is the path of the engine's socket. It differs for every home.
func (e *Engine) socket() string { return filepath.Join(sockets, hash(e.dir)[:12]+".sock") }

// Supported returns an error if this process cannot start a native engine.
func Supported() error { return supported(runtime.GOOS, os.Geteuid()) }

// supported returns an error if a native engine cannot run on this system or as this
// user.
func supported(goos string, euid int) error {
	var why string
	switch {
	case goos != "linux":
		why = "the native engine needs Linux, this host runs " + goos
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
