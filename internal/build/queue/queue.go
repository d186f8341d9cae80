// Package queue admits the builds of a run to its engine, as far as places are free. It
// starts a build again if the engine failed and came back.
//
// A [Queue] is a [run.Engine] around another one. A build releases its place after the
// gates, because they run on the engine too. Package run decides which cells to build, and
// in which order.
package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"builder/internal/build/run"
)

// A Member is the engine of a run with its limits.
type Member struct {
	Name string // address, for messages
	Jobs int    // builds at a time, at least 1
	// Up returns the engine. It starts a local engine if necessary. It is called before
	// every build.
	Up func(context.Context) (run.Engine, error)
	// Renew repairs an engine that failed independently of the build. After an error
	// the engine gets no more builds.
	Renew func(context.Context) error
}

// Queue is the engine of one run.
type Queue struct {
	Member
	note func(format string, args ...any)

	mu     sync.Mutex // guards the fields below
	builds int
	lost   error         // why the engine gets no more builds
	moved  chan struct{} // closed when a place becomes free or the engine is lost
}

var _ run.Engine = (*Queue)(nil)

// New returns the queue of an engine. It reports a failed engine to note.
func New(m Member, note func(format string, args ...any)) *Queue {
	m.Jobs = max(m.Jobs, 1)
	return &Queue{Member: m, note: note, moved: make(chan struct{})}
}

// Warm starts the engine in the background, so the first builds need not wait. Errors are
// left to the builds.
func (q *Queue) Warm(ctx context.Context) { go q.Up(ctx) }

// attempts is how often a build starts. It is small, because the build itself may kill
// the engine.
const attempts = 3

// Build implements [run.Engine]. If the engine fails, Build starts again there.
func (q *Queue) Build(ctx context.Context, job run.Job, events run.Events, look run.Look) error {
	var err error
	for range attempts {
		if err := q.enter(ctx, events); err != nil {
			return err
		}
		err = q.build(ctx, job, events, look)
		failed, isEngines := errors.AsType[*run.EngineError](err)
		if !isEngines || ctx.Err() != nil {
			return err
		}
		q.renew(ctx, failed)
	}
	return fmt.Errorf("the engine failed in all %d attempts: %w", attempts, err)
}

// Step is the step that starts or mends an engine.
const Step = "engine"

// build does a job that has a place, and releases the place.
func (q *Queue) build(ctx context.Context, job run.Job, events run.Events, look run.Look) error {
	defer q.change(func() { q.builds-- })
	log, start := events.StepStarted(Step), time.Now()
	engine, err := q.Up(ctx)
	if err != nil {
		err = &run.EngineError{Err: err}
	} else {
		fmt.Fprintf(log, "engine at %s\n", q.Name)
	}
	events.StepDone(Step, time.Since(start), false, err)
	if err != nil {
		return err
	}
	return engine.Build(ctx, job, events, look)
}

// enter waits for a place for a build. The wait is a step of the cell.
func (q *Queue) enter(ctx context.Context, events run.Events) error {
	entered, moved, err := q.takePlace()
	if entered || err != nil {
		return err
	}
	log, start := events.StepStarted(run.Wait), time.Now()
	io.WriteString(log, "the engine is busy\n")
	for !entered && err == nil {
		select {
		case <-moved:
			entered, moved, err = q.takePlace()
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	events.StepDone(run.Wait, time.Since(start), false, err)
	return err
}

// takePlace takes a free place. If none is free, it returns a channel that closes when a
// retry makes sense.
func (q *Queue) takePlace() (taken bool, moved <-chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.lost != nil:
		return false, nil, q.lost
	case q.builds == q.Jobs:
		return false, q.moved, nil
	}
	q.builds++
	return true, nil, nil
}

// renew repairs the engine. One that does not come back gets no more builds: a run does
// not wait for it.
func (q *Queue) renew(ctx context.Context, why *run.EngineError) {
	if err := q.Renew(ctx); err != nil && ctx.Err() == nil {
		q.change(func() { q.lost = &run.EngineError{Err: err} })
		return
	}
	q.note("engine %s failed, its build starts again: %v", q.Name, why)
}

// change runs do under the lock and wakes waiting builds.
func (q *Queue) change(do func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	do()
	close(q.moved)
	q.moved = make(chan struct{})
}
