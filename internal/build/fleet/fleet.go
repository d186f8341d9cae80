// Package fleet spreads the builds of a run over several engines. It moves the builds
// of a lost engine to the others.
//
// A [Fleet] is a [run.Engine] made of other engines. A build takes a free place on an
// engine with enough memory. Among several, an engine with the build's image comes
// first. A slow engine gets fewer builds without any setting. The place is released
// after the gates, because they run on the same engine.
//
// A [Member] defines an engine and how to start or repair it. Package run decides which
// cells to build, and in which order.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"builder/internal/build/run"
	"builder/internal/files/artifact"
	"builder/internal/plan/lock"
)

// A Member is one engine with its limits.
type Member struct {
	Name   string // address, for messages
	Jobs   int    // builds at a time, at least 1
	Memory int64  // bytes for all builds at a time; 0 means no limit
	// Up returns the engine. It starts a local engine if necessary. It is called before
	// every build.
	Up func(context.Context) (run.Engine, error)
	// Renew repairs an engine that failed independently of the build. After an error
	// the engine gets no more builds.
	Renew func(context.Context) error
}

// Fleet is the engines of one run.
type Fleet struct{ dispatcher *dispatcher }

var _ run.Engine = (*Fleet)(nil)

// New returns a fleet of at least one engine. It reports lost and failed engines to
// note.
func New(members []Member, note func(format string, args ...any)) *Fleet {
	return &Fleet{newDispatcher(members, note)}
}

// Jobs returns the number of builds the fleet runs at a time.
func (f *Fleet) Jobs() int {
	sum := 0
	for _, b := range f.dispatcher.workers {
		sum += b.Jobs
	}
	return sum
}

// Warm starts every engine in the background, so the first builds need not wait. Errors
// are left to the builds.
func (f *Fleet) Warm(ctx context.Context) {
	for _, b := range f.dispatcher.workers {
		go b.Up(ctx)
	}
}

// Build implements [run.Engine].
func (f *Fleet) Build(ctx context.Context, e lock.Entry, inputs []artifact.Artifact, dir string, events run.Events, look run.Look) error {
	return f.try(ctx, e, events, func(engine run.Engine) error {
		return engine.Build(ctx, e, inputs, dir, events, look)
	})
}

// Rebuild implements [run.Engine].
func (f *Fleet) Rebuild(ctx context.Context, e lock.Entry, inputs []artifact.Artifact, dir string, events run.Events) (made []artifact.Artifact, err error) {
	err = f.try(ctx, e, events, func(engine run.Engine) error {
		made, err = engine.Rebuild(ctx, e, inputs, dir, events)
		return err
	})
	return made, err
}

// anew is how often a build restarts on engines that survive its failure. It is small,
// because the build itself may kill engines.
const anew = 2

// try runs work at a place. If the engine fails, try repeats work there or on another
// engine.
func (f *Fleet) try(ctx context.Context, e lock.Entry, events run.Events, work func(run.Engine) error) error {
	var err error
	for range len(f.dispatcher.workers) + anew { // each engine can be lost once
		p, entering := f.dispatcher.enter(ctx, e, events)
		if entering != nil {
			return entering
		}
		err = p.do(ctx, events, work)
		failed, isEngines := errors.AsType[*run.EngineError](err)
		if !isEngines || ctx.Err() != nil {
			return err
		}
		p.renew(ctx, failed)
	}
	return fmt.Errorf("the engine failed in all %d attempts: %w", len(f.dispatcher.workers)+anew, err)
}

// Step is the step that starts or mends an engine.
const Step = "engine"

// do runs work at a place and releases the place.
func (p *place) do(ctx context.Context, events run.Events, work func(run.Engine) error) error {
	defer p.leave()
	log, start := events.StepStarted(Step), time.Now()
	engine, err := p.Up(ctx)
	if err != nil {
		err = &run.EngineError{Err: err}
	} else {
		fmt.Fprintf(log, "engine at %s\n", p.Name)
	}
	events.StepDone(Step, time.Since(start), false, err)
	if err != nil {
		return err
	}
	return work(engine)
}
