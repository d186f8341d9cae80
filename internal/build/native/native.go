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
	"builder/internal/input/store"
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
	dir      string // HOME/engine
	log      func(format string, args ...any)
	opts     Options
	programs programs
	process  process
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
	dir := resolve(filepath.Join(home, "engine"))
	return &Engine{
		dir: dir, log: log, opts: opts,
		programs: programs{dir: filepath.Join(dir, "build-"+buildKey()), log: log},
		process:  process{dir: dir, socket: socketOf(dir), cache: opts.Cache, log: log},
	}
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
	if e.process.current() {
		return e.process.address(), nil
	}
	if err := Supported(); err != nil {
		return "", err
	}
	unlock, err := e.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	if e.process.current() { // another process started it
		return e.process.address(), nil
	}
	if err := e.up(ctx); err != nil {
		return "", noEngine(ctx, fmt.Errorf("starting the native engine: %w", err))
	}
	e.log("engine %s started at %s", Version, e.process.address())
	return e.process.address(), nil
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

// lock waits for other processes that start or stop this home's engine.
func (e *Engine) lock(ctx context.Context) (unlock func(), err error) {
	if err = os.MkdirAll(e.dir, 0o700); err == nil {
		unlock, err = store.Lock(ctx, filepath.Join(e.dir, "lock"), func() { e.log("waiting for another run to build, start or stop the engine") })
	}
	if err != nil {
		err = noEngine(ctx, fmt.Errorf("locking the native engine: %w", err))
	}
	return unlock, err
}

// up replaces any old engine by a running one. The caller holds the lock.
func (e *Engine) up(ctx context.Context) error {
	if err := e.process.retire(ctx); err != nil {
		return err
	}
	tools, err := e.providePrograms(ctx)
	if err != nil {
		return err
	}
	if err := e.process.start(ctx, e.programs, tools); err != nil {
		return errors.Join(err, e.process.stop(context.WithoutCancel(ctx), time.Second)) // leaves nothing behind
	}
	e.programs.prune()
	return nil
}

// providePrograms builds the engine's programs if they are missing, and returns the paths
// of the host programs it runs. The caller holds the lock.
func (e *Engine) providePrograms(ctx context.Context) (tools map[string]string, err error) {
	if err := e.programs.take(ctx, e.opts.Image); err != nil {
		return nil, err
	}
	goTool, err := e.programs.goTool()
	if err != nil {
		return nil, err
	}
	if tools, err = findTools(ctx, !e.opts.NoInstall, filepath.Join(e.dir, "install.log"), e.log); err != nil {
		return nil, err
	}
	return tools, e.programs.build(ctx, goTool)
}

// Restart stops an engine that does not answer, and starts it. Builds of other processes
// on the engine end and start again there.
func (e *Engine) Restart(ctx context.Context, why error) error {
	e.log("the engine does not answer, restarting it: %v", why)
	unlock, err := e.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := e.process.stop(ctx, hungTimeout); err != nil {
		return err
	}
	return noEngine(ctx, e.up(ctx))
}

// Down stops the engine if it runs, and leaves nothing of it on the host but its home.
// The cache stays.
func (e *Engine) Down(ctx context.Context) error {
	if _, alive := e.process.pid(); !alive && !exists(filepath.Join(e.dir, "state.json")) {
		return nil
	}
	unlock, err := e.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return e.process.stop(ctx, stopTimeout)
}

// Look reports the state without starting, stopping or waiting for the engine.
func (e *Engine) Look() Status {
	s := Status{
		Built: exists(e.programs.bin("")), CLI: e.programs.bin("dagger"),
		Log: filepath.Join(e.dir, "engine.log"), StateDir: filepath.Join(e.dir, "state"),
		Current: e.process.current(),
	}
	if s.PID, s.Running = e.process.pid(); s.Running {
		s.Address = e.process.address()
	}
	return s
}

// Holds reports whether the engine's cache has the image with a digest such as
// sha256:….
func (e *Engine) Holds(digest string) bool {
	algorithm, hex, _ := strings.Cut(digest, ":")
	return hex != "" && exists(filepath.Join(e.dir, "state", "worker", "content", "blobs", algorithm, hex))
}

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
