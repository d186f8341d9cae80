package pipelines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"dagger.io/dagger"

	"builder/internal/base/diag"
	"builder/internal/build/run"
)

// session is one connection to the engine. If the engine is lost, its context ends with
// a [run.EngineError] as the cause, so that no call waits forever.
type session struct {
	client *dagger.Client
	stream *stream
	mark   string // mark of its client program; see markName
	// tools is a root file system with the programs for the sandbox. No step has ever
	// run in it. It is nil for images from a registry.
	tools      *dagger.Directory
	bubblewrap string // directory; see [Engine]
	lose       context.CancelCauseFunc
}

const (
	// connectTime limits the wait for an engine.
	connectTime = time.Minute
	// Patience is how long a working engine may leave a query unanswered.
	Patience = 2 * time.Minute
	// farewell is how long a client program may take to end, because it still has to
	// send logs.
	farewell = 15 * time.Second
)

// sessions counts the sessions of this process.
var sessions atomic.Int64

// markName is the variable that distinguishes the client programs of sessions.
const markName = "BUILDER_SESSION"

// connect opens a session. All work in the session uses the returned context.
func (e *Engine) connect(parent context.Context) (context.Context, *session, error) {
	if err := useClient(e.CLI); err != nil {
		return nil, nil, err
	}
	ctx, lose := context.WithCancelCause(parent)
	s := &session{stream: newStream(), lose: lose, mark: fmt.Sprint(sessions.Add(1)), bubblewrap: e.Bubblewrap}
	err := reachable(ctx, e.Address)
	if err == nil {
		// The client program does not end by itself if the engine hangs.
		late := time.AfterFunc(connectTime, func() { lose(fmt.Errorf("no answer within %s", connectTime)) })
		ended := context.AfterFunc(ctx, func() { killMarked(s.mark) })
		s.client, err = dagger.Connect(ctx, dagger.WithLogOutput(s.stream), dagger.WithEnvironmentVariable(markName, s.mark), dagger.WithRunnerHost(e.Address))
		late.Stop()
		ended()
	}
	if err == nil {
		go s.watch(ctx, cmp.Or(e.Patience, Patience))
		return ctx, s, nil
	}
	killMarked(s.mark)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	lose(nil)
	if parent.Err() == nil {
		err = &run.EngineError{Err: fmt.Errorf("connecting to the engine at %s: %w", e.Address, err)}
	}
	return nil, nil, err
}

// useClient sets the client program of the SDK and its environment, which is possible only
// through the environment of this process. Without a program the SDK downloads it.
func useClient(program string) error {
	os.Setenv("DO_NOT_TRACK", "1")
	if os.Getenv("GOGC") == "" {
		os.Setenv("GOGC", "400") // the client lives for one cell and is small
	}
	if program == "" {
		return nil
	}
	return os.Setenv("_EXPERIMENTAL_DAGGER_CLI_BIN", program)
}

// reachable checks that a unix or tcp address accepts connections. Without this check,
// the client program retries until it is stopped.
func reachable(ctx context.Context, address string) error {
	network, place, _ := strings.Cut(address, "://")
	if network != "unix" && network != "tcp" {
		return nil
	}
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, network, place)
	if err != nil {
		return err
	}
	return conn.Close()
}

// watch queries the engine at intervals.
func (s *session) watch(ctx context.Context, patience time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(patience / 6):
		}
		s.ask(ctx, patience)
	}
}

// ask ends the session if the engine does not answer in time.
func (s *session) ask(ctx context.Context, within time.Duration) {
	asked, done := context.WithTimeout(ctx, within)
	defer done()
	if _, err := s.client.Version(asked); err != nil && ctx.Err() == nil {
		s.lose(&run.EngineError{Err: fmt.Errorf("the engine does not answer: %w", err)})
	}
}

// stepFaults are parts of the engine's errors (v0.19.10) about what a step left or
// printed. A step can cause each of them, so none says anything about the engine.
var stepFaults = []string{
	syscall.ENAMETOOLONG.Error(), // directories nested too deep
	syscall.ELOOP.Error(), "too many links",
	tooLong,
}

// engines returns err as a [run.EngineError] if the engine caused it and not the build:
// an error without a class from the engine's interface. If the engine no longer
// answers, the session ends.
func (s *session) engines(ctx context.Context, err error) error {
	if err == nil || diag.Worst(err) != diag.OK || local(err) {
		return err
	}
	if slices.ContainsFunc(stepFaults, func(words string) bool { return strings.Contains(err.Error(), words) }) {
		return diag.Errorf(diag.Build, "the engine cannot keep or read what the step made: %.400s", err).
			WithHint("let the step leave no directories nested deeper than 4,096 letters and no links in a circle, and print less than 128 MiB")
	}
	if strings.Contains(err.Error(), syscall.ENOSPC.Error()) {
		return diag.Errorf(diag.NoEngine, "a disk is full: %w", err).
			WithHint("make room: `builder store gc` empties the cache of the engine that builder starts, results go to --out; then run it again: it continues where it stopped")
	}
	if strings.Contains(err.Error(), "security.insecure is not allowed") {
		return diag.Errorf(diag.NoEngine, "the engine forbids privileged execs, in which the sandbox of a step is made: %w", err).
			WithHint("allow the entitlement security.insecure in its configuration (engine.json: security.insecureRootCapabilities), or name another engine with --engine")
	}
	if ctx.Err() == nil {
		s.ask(ctx, connectTime)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &run.EngineError{Err: err}
}

// local reports whether an error concerns a file of this host.
func local(err error) bool {
	_, path := errors.AsType[*fs.PathError](err)
	_, link := errors.AsType[*os.LinkError](err)
	return path || link
}

// close ends the session. It gives the client program time to send its logs, unless the
// engine is lost, and then kills it. A client of a hung engine would otherwise wait for
// five minutes (SDK v0.19.10).
func (s *session) close(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.client.Close()
	}()
	wait := farewell
	if _, lost := errors.AsType[*run.EngineError](context.Cause(ctx)); lost {
		wait = 0
	}
	select {
	case <-ended:
	case <-time.After(wait):
		killMarked(s.mark)
		<-ended
	}
	s.lose(nil)
}

// Version returns the version of the engine at an address, using the client program at
// a path. The wait ends with ctx, even if the engine hangs.
func Version(ctx context.Context, address, client string) (version string, err error) {
	err = inSession(ctx, address, client, func(ctx context.Context, d *dagger.Client) (err error) {
		version, err = d.Version(ctx)
		return err
	})
	return version, err
}

// Prune makes the engine at an address collect its cache now, down to its limit. By itself
// the engine collects beside the next build, which needs the space already.
func Prune(ctx context.Context, address, client string) error {
	return inSession(ctx, address, client, func(ctx context.Context, d *dagger.Client) error {
		return d.Engine().LocalCache().Prune(ctx, dagger.EngineCachePruneOpts{UseDefaultPolicy: true})
	})
}

// inSession calls ask in a session of its own.
func inSession(ctx context.Context, address, client string, ask func(context.Context, *dagger.Client) error) error {
	e := Engine{Address: address, CLI: client}
	ctx, s, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	if err := ask(ctx, s.client); err != nil {
		return fmt.Errorf("asking the engine at %s: %w", address, err)
	}
	return nil
}
