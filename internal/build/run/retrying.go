package run

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Retrying is an [Engine] around another one, which it starts before a build. If that
// engine fails and comes back, the build starts again.
type Retrying struct {
	Name string // address, for messages
	// Up returns the engine. It starts a local engine if necessary. It is called before
	// every build.
	Up func(context.Context) (Engine, error)
	// Renew repairs an engine that failed independently of the build. After an error
	// the engine gets no more builds: a run does not wait for it.
	Renew func(context.Context) error
	// Prune makes the engine collect its cache. A run calls it only between builds.
	Prune func(context.Context) error
	Note  func(format string, args ...any) // reports a failed engine

	lost atomic.Pointer[EngineError] // why the engine gets no more builds
}

var _ Engine = (*Retrying)(nil)

// attempts is how often a build starts. It is small, because the build itself may kill
// the engine.
const attempts = 3

// Build implements [Engine]. It starts the engine as a step of the cell. If the engine
// fails, Build starts again there.
func (r *Retrying) Build(ctx context.Context, job Job, events Events, look Look) error {
	var err error
	for range attempts {
		if lost := r.lost.Load(); lost != nil {
			return lost
		}
		log, start := events.StepStarted("engine"), time.Now()
		var engine Engine
		if engine, err = r.Up(ctx); err != nil {
			err = &EngineError{Err: err}
		} else {
			fmt.Fprintf(log, "engine at %s\n", r.Name)
		}
		events.StepDone("engine", time.Since(start), false, err)
		if err == nil {
			err = engine.Build(ctx, job, events, look)
		}
		failed, isEngines := errors.AsType[*EngineError](err)
		if !isEngines || ctx.Err() != nil {
			return err
		}
		if err := r.Renew(ctx); err != nil && ctx.Err() == nil {
			r.lost.Store(&EngineError{Err: err})
			continue
		}
		r.Note("engine %s failed, its build starts again: %v", r.Name, failed)
	}
	return fmt.Errorf("the engine failed in all %d attempts: %w", attempts, err)
}
