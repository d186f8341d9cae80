package term

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// frame is the time between two frames.
const frame = 100 * time.Millisecond

// maxText bounds what a single event may say about an error.
const maxText = 300

// Progress shows what runs. Callers report events, in any order and from any
// goroutine; how they look is the business of a view.
type Progress struct {
	mu      sync.Mutex
	view    view
	running []*task
	closed  bool
	stop    chan struct{}
	stopped chan struct{}
}

// A view shows events for good and the running tasks for now.
type view interface {
	draw(now time.Time, events []event, running []*task)
}

// A task is a running step of a cell.
type task struct {
	cell, step string
	since      time.Time
	shown      time.Time // when a plain log last mentioned it
	last       string    // last line of its log
}

// An event is something that happened, as it is said.
type event struct {
	kind             kind
	cell, step, text string
}

type kind int

const (
	noted kind = iota
	started
	done
	failed
	stopped
)

// NewProgress shows progress on w: lines that move where options allow it, a
// log with times elsewhere. Close it when nothing runs any more.
func NewProgress(w io.Writer, options Options) *Progress {
	p := &Progress{view: newView(w, options), stop: make(chan struct{}), stopped: make(chan struct{})}
	go p.tick()
	return p
}

func newView(w io.Writer, options Options) view {
	if !options.Live {
		return &plain{w: w}
	}
	if options.Size == nil {
		options.Size = func() (int, int) { return 80, 24 }
	}
	return &live{w: w, size: options.Size, colour: options.Colour}
}

// Start reports that a step of a cell has begun.
func (p *Progress) Start(cell, step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.running = append(p.running, &task{cell: cell, step: step, since: now, shown: now})
	p.say(event{kind: started, cell: cell, step: step, text: "started"})
}

// Line reports a line of the log of the cell's newest step. It is shown with
// the next frame, if by then there is no newer one.
func (p *Progress) Line(cell, line string) {
	line = lastLine(line)
	if line == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range slices.Backward(p.running) {
		if t.cell == cell {
			t.last = line
			return
		}
	}
}

// Done reports that a step has ended: after d, or because its result was
// already there, or with an error. A step that was never started may end too.
func (p *Progress) Done(cell, step string, d time.Duration, cached bool, err error) {
	e := event{kind: done, cell: cell, step: step, text: "done " + seconds(d)}
	switch {
	case err != nil:
		e.kind, e.text = failed, truncate(oneLine(fmt.Sprintf("failed %s: %v", seconds(d), err)), maxText)
	case cached:
		e.text = "cached"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(cell, step)
	p.say(e)
}

// Note says something that belongs to no step.
func (p *Progress) Note(format string, args ...any) {
	text := strings.TrimRight(Clean(fmt.Sprintf(format, args...)), "\n")
	var events []event
	for line := range strings.SplitSeq(text, "\n") {
		events = append(events, event{kind: noted, text: line})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.say(events...)
}

// Close ends the display. Steps that still run are said to have stopped. It
// may be called twice; events that come later are still printed.
func (p *Progress) Close() {
	if !p.finish() {
		return
	}
	close(p.stop)
	<-p.stopped
}

func (p *Progress) finish() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	var events []event
	for _, t := range p.running {
		events = append(events, event{stopped, t.cell, t.step, "stopped " + seconds(time.Since(t.since))})
	}
	p.closed, p.running = true, nil
	p.say(events...)
	return true
}

// tick draws again while time passes.
func (p *Progress) tick() {
	defer close(p.stopped)
	ticker := time.NewTicker(frame)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
			p.mu.Lock()
			p.say()
			p.mu.Unlock()
		}
	}
}

// say draws a frame with what is new in it; the caller holds the lock.
func (p *Progress) say(events ...event) {
	var running []*task
	if !p.closed {
		running = p.running
	}
	p.view.draw(time.Now(), events, running)
}

func (p *Progress) forget(cell, step string) {
	i := slices.IndexFunc(p.running, func(t *task) bool { return t.cell == cell && t.step == step })
	if i >= 0 {
		p.running = slices.Delete(p.running, i, i+1)
	}
}

// words joins what an event or a task has to say, without gaps for what is empty.
func words(parts ...string) string {
	var said []string
	for _, part := range parts {
		if part != "" {
			said = append(said, part)
		}
	}
	return strings.Join(said, "  ")
}

// seconds is exact where it matters and readable where it does not.
func seconds(d time.Duration) string {
	if d < 10*time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
