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

// anew is how often a build restarts on engines that survive its failure. It is small,
// because the build itself may kill engines.
const anew = 2

// Build implements [run.Engine]. If an engine fails, Build starts again there or on
// another engine.
func (f *Fleet) Build(ctx context.Context, job run.Job, events run.Events, look run.Look) error {
	var err error
	for range len(f.dispatcher.workers) + anew { // each engine can be lost once
		p, entering := f.dispatcher.enter(ctx, job.Entry, events)
		if entering != nil {
			return entering
		}
		err = p.build(ctx, job, events, look)
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

// build does a job at a place and releases the place.
func (p *place) build(ctx context.Context, job run.Job, events run.Events, look run.Look) error {
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
	return engine.Build(ctx, job, events, look)
}
