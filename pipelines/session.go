package pipelines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"dagger.io/dagger"

	"builder/internal/base/diag"
	"builder/internal/build/run"
)

// session is one connection to the engine. Its context ends when the engine is
// lost, with a [run.EngineError] as the cause, so that nobody waits for an answer
// that will not come.
type session struct {
	client *dagger.Client
	stream *stream
	mark   string // of its client program; see markName
	// tools is a root file system whose programs make the sandbox. No step has ever
	// run in it. It is nil in a cell whose images come from a registry.
	tools      *dagger.Directory
	bubblewrap string // directory; see [Engine]
	lose       context.CancelCauseFunc
}

const (
	// connectTime bounds the wait for an engine that was named. One that the
	// client provisions in Docker may be pulled first.
	connectTime   = time.Minute
	provisionTime = 10 * time.Minute
	// Patience is how long an engine at work may take to say that it is there.
	Patience = 2 * time.Minute
	// farewell is how long a client program may take to end: it has logs to pass on.
	farewell = 15 * time.Second
)

// sessions counts the sessions of this process.
var sessions atomic.Int64

// markName is the variable that tells the client program of one session from those
// of the others.
const markName = "BUILDER_SESSION"

// connect opens a session. The context that it returns is that of all work in it.
func (e *Engine) connect(parent context.Context) (context.Context, *session, error) {
	if err := useClient(e.CLI); err != nil {
		return nil, nil, err
	}
	ctx, lose := context.WithCancelCause(parent)
	s := &session{stream: newStream(), lose: lose, mark: fmt.Sprint(sessions.Add(1)), bubblewrap: e.Bubblewrap}
	err := reachable(ctx, e.Address)
	if err == nil {
		s.client, err = e.dial(ctx, s)
	}
	if err == nil {
		go s.watch(ctx, e.patience())
		return ctx, s, nil
	}
	killMarked(s.mark)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	lose(nil)
	if parent.Err() == nil {
		err = &run.EngineError{Err: fmt.Errorf("connecting to the engine at %s: %w", cmp.Or(e.Address, "Docker or Podman"), err)}
	}
	return nil, nil, err
}

// useClient tells the SDK which client program to use, which only the environment
// can; without one the SDK downloads it.
func useClient(program string) error {
	os.Setenv("DO_NOT_TRACK", "1")
	if program == "" {
		return nil
	}
	return os.Setenv("_EXPERIMENTAL_DAGGER_CLI_BIN", program)
}

// reachable asks whether anybody listens at an address of a kind that can be asked;
// the client program asks again and again, until it is stopped.
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

// dial starts the client program of a session. Where it waits for an engine that
// hangs it does not end by itself.
func (e *Engine) dial(ctx context.Context, s *session) (*dagger.Client, error) {
	limit := connectTime
	opts := []dagger.ClientOpt{dagger.WithLogOutput(s.stream), dagger.WithEnvironmentVariable(markName, s.mark)}
	if e.Address == "" {
		limit = provisionTime
	} else {
		opts = append(opts, dagger.WithRunnerHost(e.Address))
	}
	late := time.AfterFunc(limit, func() { s.lose(fmt.Errorf("no answer within %s", limit)) })
	defer late.Stop()
	defer context.AfterFunc(ctx, func() { killMarked(s.mark) })()
	return dagger.Connect(ctx, opts...)
}

// patience is how long this engine may take to answer.
func (e *Engine) patience() time.Duration { return cmp.Or(e.Patience, Patience) }

// watch asks the engine from time to time whether it is there.
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

// engines tells a fault of the engine from one of the build: an error without a
// class that came out of the engine's interface. Where the engine does not answer
// any more it is lost, and the session ends.
func (s *session) engines(ctx context.Context, err error) error {
	if err == nil || diag.Worst(err) != diag.OK || local(err) {
		return err
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

// local reports whether an error is about a file of this host.
func local(err error) bool {
	_, path := errors.AsType[*fs.PathError](err)
	_, link := errors.AsType[*os.LinkError](err)
	return path || link
}

// close ends the session. The client program is given time to pass its logs on,
// unless the engine is lost; one that hangs keeps it for five minutes (SDK
// v0.19.10).
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
