package queue_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"builder/internal/base/diag"
	"builder/internal/build/queue"
	"builder/internal/build/run"
	"builder/internal/plan/lock"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// host is an engine with a record of its builds.
type host struct {
	mu     sync.Mutex
	built  []string
	now    int // builds in progress
	most   int
	steps  []string
	fails  error         // error of a build
	dead   bool          // the engine does not start
	takes  time.Duration // duration of a build
	renews int
}

// queued returns a queue of the host's engine.
func (h *host) queued(jobs int) *queue.Queue {
	up := func(context.Context) (run.Engine, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.dead {
			return nil, errors.New("it does not answer")
		}
		return h, nil
	}
	renew := func(ctx context.Context) error {
		h.change(func() { h.renews++ })
		_, err := up(ctx)
		return err
	}
	return queue.New(queue.Member{Name: "here", Jobs: jobs, Up: up, Renew: renew}, func(string, ...any) {})
}

// StepStarted implements [run.Events].
func (h *host) StepStarted(step string) io.Writer {
	h.change(func() { h.steps = append(h.steps, step) })
	return io.Discard
}

// StepDone implements [run.Events].
func (h *host) StepDone(string, time.Duration, bool, error) {}

func (h *host) change(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do()
}

// Build implements [run.Engine].
func (h *host) Build(ctx context.Context, job run.Job, _ run.Events, look run.Look) error {
	h.change(func() {
		h.now++
		h.most = max(h.most, h.now)
	})
	defer h.change(func() { h.now-- })
	time.Sleep(max(h.takes, time.Second))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	h.mu.Lock()
	err := h.fails
	h.mu.Unlock()
	if err != nil {
		return err
	}
	h.change(func() { h.built = append(h.built, job.Entry.ID) })
	return look(ctx, run.Built{})
}

// build builds n entries at once, as far as places are free.
func (h *host) build(ctx context.Context, q *queue.Queue, n int) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		e := lock.Entry{ID: fmt.Sprint("cell-", i)}
		all.Go(func() {
			errs[i] = q.Build(ctx, run.Job{Entry: e}, h, func(context.Context, run.Built) error { return nil })
		})
		time.Sleep(time.Millisecond) // keeps the order
	}
	all.Wait()
	return errs
}

func TestPlacesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		must.Succeed(t, errors.Join(h.build(t.Context(), h.queued(3), 4)...))
		check.That(t, len(h.built) == 4 && h.most == 3, "%d cells, up to %d together, want 3", len(h.built), h.most)
		check.That(t, slices.Contains(h.steps, run.Wait), "that cells waited stands nowhere: %q", h.steps)
	})
}

func TestAnEngineThatComesBackGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{fails: &run.EngineError{Err: errors.New("killed")}}
		time.AfterFunc(1500*time.Millisecond, func() { h.change(func() { h.fails = nil }) })
		err := h.build(t.Context(), h.queued(1), 1)[0]
		check.That(t, err == nil && len(h.built) == 1 && h.renews == 1, "%v, built %v, put in order %d times", err, h.built, h.renews)
	})
}

func TestABuildThatKillsItsEngineEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{fails: &run.EngineError{Err: errors.New("killed")}}
		err := h.build(t.Context(), h.queued(1), 1)[0]
		check.That(t, diag.CodeOf(err) == diag.NoEngine && strings.Contains(err.Error(), "the engine failed in all 3 attempts: killed"), "%v", err)
	})
}

// The cells that wait for a lost engine end too.
func TestALostEngineEndsEveryCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{dead: true}
		for _, err := range h.build(t.Context(), h.queued(1), 3) {
			check.That(t, diag.CodeOf(err) == diag.NoEngine && strings.Contains(err.Error(), "it does not answer"), "%v", err)
		}
	})
}

func TestAFaultOfTheBuildStaysOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{fails: diag.Errorf(diag.Build, "exit 1")}
		err := h.build(t.Context(), h.queued(1), 1)[0]
		check.That(t, diag.CodeOf(err) == diag.Build && h.renews == 0, "%v", err)
	})
}

func TestWaitingCanBeInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{takes: time.Hour}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		for _, err := range h.build(ctx, h.queued(1), 3) {
			check.That(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
		}
	})
}

// A panic of one build must not block the place for others.
func TestAPanicGivesThePlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		q := h.queued(1)
		func() {
			defer func() { recover() }()
			q.Build(t.Context(), run.Job{}, h, func(context.Context, run.Built) error { panic("boom") })
		}()
		must.Succeed(t, errors.Join(h.build(t.Context(), q, 1)...))
	})
}
