package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"builder/internal/base/diag"
	"builder/internal/base/size"
	"builder/internal/build/run"
	"builder/internal/plan/lock"
)

// dispatcher assigns builds to engines.
type dispatcher struct {
	note    func(string, ...any)
	mu      sync.Mutex
	workers []*worker
	moved   chan struct{} // closed when a place becomes free or an engine is lost
}

// worker is an engine with its builds. The dispatcher's lock guards the fields below
// Member.
type worker struct {
	Member
	builds int
	used   int64           // bytes of memory the builds use
	holds  map[string]bool // images of the builds started here
	lost   error           // why the engine gets no more builds
}

func newDispatcher(members []Member, note func(string, ...any)) *dispatcher {
	d := &dispatcher{note: note, moved: make(chan struct{})}
	for _, m := range members {
		m.Jobs = max(m.Jobs, 1)
		d.workers = append(d.workers, &worker{Member: m, holds: map[string]bool{}})
	}
	return d
}

// place is a slot of one build on an engine.
type place struct {
	*worker
	dispatcher *dispatcher
	takes      int64 // bytes of memory
}

// enter waits for a place. The wait is a step of the cell. A build too large for every
// engine is never started, because the system would kill its linker.
func (d *dispatcher) enter(ctx context.Context, e lock.Entry, events run.Events) (*place, error) {
	image := e.Image.Key()
	p, moved, err := d.takePlace(e, image)
	if p != nil || err != nil {
		return p, err
	}
	log, start := events.StepStarted(run.Wait), time.Now()
	fmt.Fprintf(log, "every engine is busy or has too little free memory\n")
	for p == nil && err == nil {
		select {
		case <-moved:
			p, moved, err = d.takePlace(e, image)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	events.StepDone(run.Wait, time.Since(start), false, err)
	return p, err
}

// takePlace returns the best free place. If none is free, it returns a channel that closes
// when a retry makes sense.
func (d *dispatcher) takePlace(e lock.Entry, image string) (*place, <-chan struct{}, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.checkFits(e); err != nil {
		return nil, nil, err
	}
	var best *worker
	for _, b := range d.workers {
		if b.free(e) && (best == nil || b.better(best, image)) {
			best = b
		}
	}
	if best == nil {
		return nil, d.moved, nil
	}
	best.builds++
	best.used += e.Memory
	best.holds[image] = true
	return &place{best, d, e.Memory}, nil, nil
}

// checkFits returns an error if no engine can ever take a build.
func (d *dispatcher) checkFits(e lock.Entry) error {
	var most int64
	var lost []error
	for _, b := range d.workers {
		switch {
		case b.lost != nil:
			lost = append(lost, b.lost)
		case b.Memory == 0 || e.Memory <= b.Memory:
			return nil
		default:
			most = max(most, b.Memory)
		}
	}
	if len(lost) == len(d.workers) {
		return errors.Join(lost...)
	}
	return diag.Errorf(diag.NoEngine, "the build needs %s of memory, the largest engine has %s", size.Text(e.Memory), size.Text(most)).
		WithHint("build on a larger host (--engine), or state the memory of this host (--memory)")
}

func (b *worker) free(e lock.Entry) bool {
	return b.lost == nil && b.builds < b.Jobs && (b.Memory == 0 || b.used+e.Memory <= b.Memory)
}

// better prefers an engine with the image, then the one with the larger share of free
// places.
func (b *worker) better(than *worker, image string) bool {
	if b.holds[image] != than.holds[image] {
		return b.holds[image]
	}
	return cmp.Less(float64(b.builds)/float64(b.Jobs), float64(than.builds)/float64(than.Jobs))
}

// leave releases the place.
func (p *place) leave() {
	p.dispatcher.change(func() {
		p.builds--
		p.used -= p.takes
	})
}

// lose removes an engine from the run for good. A run does not wait for an engine that
// may never return.
func (p *place) lose(why *run.EngineError) {
	first, others := false, 0
	p.dispatcher.change(func() {
		first, p.lost = p.lost == nil, why
		for _, b := range p.dispatcher.workers {
			if b.lost == nil {
				others++
			}
		}
	})
	if first && others > 0 {
		p.dispatcher.note("lost engine %s, the other engines build its cells: %v", p.Name, why)
	}
}

// renew repairs an engine, or removes it from the run.
func (p *place) renew(ctx context.Context, why *run.EngineError) {
	if err := p.Renew(ctx); err != nil && ctx.Err() == nil {
		p.lose(&run.EngineError{Err: err})
		return
	}
	p.dispatcher.note("engine %s failed, its build starts again: %v", p.Name, why)
}

// change runs do under the lock and wakes waiting builds.
func (d *dispatcher) change(do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	do()
	close(d.moved)
	d.moved = make(chan struct{})
}
