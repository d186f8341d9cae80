// Package fleet spreads the builds of a run over several engines, and takes the
// builds of an engine that is lost to the others.
//
// A [Fleet] is a [run.Engine] made of others. A build takes a place on an
// engine: one that is free, has the memory, and, if there is a choice, has the
// image that the build begins with. So a slow engine gets fewer builds, without
// anybody having to say that it is slow. The place is given back when the gates
// have looked at what was built, because they run on the same engine.
//
// What an engine is, and how it is started or put in order, its [Member] says; which
// cells are begun, and in which order, is a matter of run.
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

// A Member is one engine and what may be asked of it.
type Member struct {
	Name   string // as people call it: its address
	Jobs   int    // builds at a time, at least 1
	Memory int64  // bytes that the builds of one time may take together; 0 is without a bound
	// Up returns the engine, started if it is ours and does not run. It is called
	// before every build.
	Up func(context.Context) (run.Engine, error)
	// Room makes room for a build, before it begins, and returns what is called when
	// it has ended. An error says why it is not begun. nil is room for everything.
	Room func(context.Context, lock.Entry) (ended func(), err error)
	// Renew puts an engine in order that failed for reasons of its own, not of a
	// build. An error says that nothing can be expected of it any more.
	Renew func(ctx context.Context, why *run.EngineError) error
}

// Fleet is the engines of one run.
type Fleet struct{ dispatcher *dispatcher }

var _ run.Engine = (*Fleet)(nil)

// New returns a fleet of at least one engine. Note hears what happens to them.
func New(members []Member, note func(format string, args ...any)) *Fleet {
	return &Fleet{newDispatcher(members, note)}
}

// Jobs is the number of builds that the fleet can do at a time.
func (f *Fleet) Jobs() int {
	sum := 0
	for _, b := range f.dispatcher.workers {
		sum += b.Jobs
	}
	return sum
}

// Warm starts every engine, so that the first builds need not wait. What goes
// wrong the builds will say.
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

// anew is how often a build is begun again at engines that live on: it may be what
// kills them.
const anew = 2

// try does work at a place, and again, there or elsewhere, when the engine fails
// in the middle of it.
func (f *Fleet) try(ctx context.Context, e lock.Entry, events run.Events, work func(run.Engine) error) error {
	var err error
	for range len(f.dispatcher.workers) + anew { // each engine can be lost once
		p, entering := f.dispatcher.enter(ctx, e, events)
		if entering != nil {
			return entering
		}
		err = p.do(ctx, e, events, work)
		failed, isEngines := errors.AsType[*run.EngineError](err)
		if !isEngines || ctx.Err() != nil {
			return err
		}
		p.renew(ctx, failed)
	}
	return fmt.Errorf("begun %d times, and the engine failed each time: %w", len(f.dispatcher.workers)+anew, err)
}

// do does work at a place and gives the place back.
func (p *place) do(ctx context.Context, e lock.Entry, events run.Events, work func(run.Engine) error) error {
	defer p.leave()
	log, start := events.StepStarted("engine"), time.Now()
	engine, err := p.Up(ctx)
	if err != nil {
		err = &run.EngineError{Err: err}
	} else {
		fmt.Fprintf(log, "engine at %s\n", p.Name)
	}
	ended := func() {}
	if err == nil && p.Room != nil {
		ended, err = p.Room(ctx, e)
	}
	events.StepDone("engine", time.Since(start), false, err)
	if err != nil {
		return err
	}
	defer ended()
	return work(engine)
}
