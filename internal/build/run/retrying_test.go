package run_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/plan/lock"
	"builder/test/kit/check"
)

// host is an engine with a record of its builds.
type host struct {
	mu     sync.Mutex
	built  []string
	fails  error // error of a build
	dead   bool  // the engine does not start
	renews int
}

// retrying returns the host's engine.
func (h *host) retrying() *run.Retrying {
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
	return &run.Retrying{Name: "here", Up: up, Renew: renew, Note: func(string, ...any) {}}
}

// StepStarted implements [run.Events].
func (h *host) StepStarted(string) io.Writer { return io.Discard }

// StepDone implements [run.Events].
func (h *host) StepDone(string, time.Duration, bool, error) {}

func (h *host) change(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do()
}

// Build implements [run.Engine].
func (h *host) Build(ctx context.Context, job run.Job, _ run.Events, look run.Look) error {
	time.Sleep(time.Second)
	h.mu.Lock()
	err := h.fails
	h.mu.Unlock()
	if err != nil {
		return err
	}
	h.change(func() { h.built = append(h.built, job.Entry.ID) })
	return look(ctx, run.Built{})
}

// build builds n entries at once.
func (h *host) build(ctx context.Context, q *run.Retrying, n int) []error {
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

func TestAnEngineThatComesBackGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{fails: &run.EngineError{Err: errors.New("killed")}}
		time.AfterFunc(1500*time.Millisecond, func() { h.change(func() { h.fails = nil }) })
		err := h.build(t.Context(), h.retrying(), 1)[0]
		check.That(t, err == nil && len(h.built) == 1 && h.renews == 1, "%v, built %v, put in order %d times", err, h.built, h.renews)
	})
}

func TestABuildThatKillsItsEngineEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{fails: &run.EngineError{Err: errors.New("killed")}}
		err := h.build(t.Context(), h.retrying(), 1)[0]
		check.That(t, diag.CodeOf(err) == diag.NoEngine && strings.Contains(err.Error(), "the engine failed in all 3 attempts: killed"), "%v", err)
	})
}

func TestALostEngineEndsEveryCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{dead: true}
		for _, err := range h.build(t.Context(), h.retrying(), 3) {
			check.That(t, diag.CodeOf(err) == diag.NoEngine && strings.Contains(err.Error(), "it does not answer"), "%v", err)
		}
	})
}

func TestAFaultOfTheBuildStaysOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{fails: diag.Errorf(diag.Build, "exit 1")}
		err := h.build(t.Context(), h.retrying(), 1)[0]
		check.That(t, diag.CodeOf(err) == diag.Build && h.renews == 0, "%v", err)
	})
}
