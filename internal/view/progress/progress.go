// Package progress shows a run while it goes on: lines that move on a terminal, a log,
// the groups and annotations of GitHub Actions, or events for programs. It is told what
// happens and knows nothing of cells but their names and how long they are likely to
// take; what is printed when all is over is [builder/internal/view/term]'s.
//
//   - A line that is kept is written once. Only the lines of running steps are
//     drawn again, and each frame leaves the terminal as it found it, so that a
//     tool that is killed leaves nothing to repair.
//   - Nothing is said by colour alone, nor by a sign alone: there is always a word.
package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"builder/internal/base/diag"
	"builder/internal/view/term"
)

// frame is the time between two frames.
const frame = 100 * time.Millisecond

// maxText bounds what a single event may say about an error.
const maxText = 300

// A Display shows what runs. Callers report events, in any order and from any
// goroutine; how they look is the business of a view.
type Display struct {
	mu      sync.Mutex
	view    view
	lines   bool // the view wants the lines of logs
	now     moment
	pending []Event // lines that the next frame shows
	closed  bool
	stop    chan struct{}
	stopped chan struct{}
}

// A view shows events for good and the present for now.
type view interface {
	draw(events []Event, now moment)
}

// A moment is the present of a display.
type moment struct {
	time  time.Time
	begun time.Time // when the run began, zero where there is none
	slots int       // how many of its cells run at a time
	jobs  []*job    // the cells of the run, then what else goes on
}

// several reports whether a line must say which cell it is of.
func (m moment) several() bool { return len(m.jobs) > 1 }

// New shows progress on w as the options say. Close it when nothing runs any more.
func New(w io.Writer, options Options) *Display {
	p := &Display{
		view: newView(w, options), lines: options.Verbose || options.Format == GitHub,
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	go p.tick()
	return p
}

// Run reports the cells that are to be built, slots of them at a time. Of these
// each has one line from its first step until CellDone.
func (p *Display) Run(cells []Cell, slots int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.begun, p.now.slots = time.Now(), slots
	var ids []string
	for _, c := range cells {
		p.now.jobs = append(p.now.jobs, newJob(c))
		ids = append(ids, term.OneLine(c.ID))
	}
	label(p.now.jobs)
	left, known := remaining(p.now.jobs, p.now.begun, slots)
	p.say(Event{Event: RunStarted, Cells: ids, Estimate: estimate(left, known)})
}

// Start reports that a step of a cell has begun.
func (p *Display) Start(cell, step string) { p.start(cell, step, false) }

// Wait reports that a cell waits for others, as a step of its own.
func (p *Display) Wait(cell, step string) { p.start(cell, step, true) }

func (p *Display) start(cell, step string, waits bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	j := p.job(cell)
	if j == nil {
		j = newJob(Cell{ID: cell})
		j.planned = false
		p.now.jobs = append(p.now.jobs, j)
	}
	var events []Event
	if j.planned && j.begun.IsZero() {
		left, known := j.left(now)
		events = append(events, Event{Event: CellStarted, Cell: cell, Estimate: estimate(left, known)})
	}
	j.start(step, waits, now)
	e := Event{Event: StepStarted, Cell: cell, Step: step}
	if waits {
		e.Status = Waiting
	}
	if likely, known := j.ahead[step]; known {
		e.Estimate = estimate(likely, true)
	}
	p.say(append(events, e)...)
}

// Line reports a line of the log of the cell's step. It is shown with the next
// frame; of lines that come faster a display that shows one shows the newest.
func (p *Display) Line(cell, line string) {
	line = newest(diag.Redact(line))
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.job(cell)
	if j == nil || j.over {
		return
	}
	if strings.ContainsFunc(line, unicode.IsLetter) { // compilers underline
		j.last = line
	}
	if p.lines {
		p.pending = append(p.pending, p.stamp(Event{Event: LogLine, Cell: cell, Step: j.step, Text: line}))
	}
}

// newest is the last line of s that shows anything: of a progress bar, which
// overwrites itself, its newest state.
func newest(s string) string {
	lines := strings.Split(term.Clean(s), "\n")
	for _, line := range slices.Backward(lines) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

// Bytes reports how many bytes of all the cell's step has moved; total is 0 or
// less where it is not known. Done may fall back.
func (p *Display) Bytes(cell string, done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.job(cell)
	if j == nil || j.over {
		return
	}
	now := time.Now()
	if j.moved.since.IsZero() {
		j.moved = transfer{first: done, since: now}
	}
	j.moved.done, j.moved.total = done, max(0, total)
	if now.Sub(j.moved.shown) >= time.Second || done == total {
		j.moved.shown = now
		p.pending = append(p.pending, p.stamp(Event{Event: Bytes, Cell: cell, Step: j.step, Done: new(done), Total: new(j.moved.total)}))
	}
}

// Done reports that a step has ended: after d, or because its result was
// already there, or with an error. A step that was never started may end too.
func (p *Display) Done(cell, step string, d time.Duration, cached bool, err error) {
	e := Event{Event: StepDone, Cell: cell, Step: step, Status: Done, Seconds: inSeconds(d)}
	switch {
	case err != nil:
		e.Status, e.Text = Failed, term.OneLine(err.Error())
	case cached:
		e.Status = Cached
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if j := p.job(cell); j != nil {
		j.done(step)
		if !j.planned && j.over {
			p.now.jobs = slices.DeleteFunc(p.now.jobs, func(other *job) bool { return other == j })
		}
	}
	p.say(e)
}

// CellDone reports what became of a cell of the run: its status, of which good is
// no failure, how long its steps took, and a word on it, which may be empty.
func (p *Display) CellDone(cell, status string, good bool, d time.Duration, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j := p.job(cell); j != nil {
		j.ended, j.failed = true, !good
	}
	p.say(Event{Event: CellDone, Cell: cell, Status: status, Seconds: inSeconds(d), Text: term.OneLine(text)})
}

// Note says something that belongs to no step.
func (p *Display) Note(format string, args ...any) {
	text := strings.TrimRight(term.Clean(fmt.Sprintf(format, args...)), "\n")
	var events []Event
	for line := range strings.SplitSeq(text, "\n") {
		events = append(events, Event{Event: Note, Text: line})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.say(events...)
}

// Faults reports what is wrong in the end, to programs and to servers that mark
// it; people read it elsewhere ([term.PrintError]).
func (p *Display) Faults(err error) {
	var events []Event
	for _, f := range diag.All(err) {
		events = append(events, Event{Event: Fault, Code: f.Code.String(), Text: term.Clean(f.Error()), Hint: term.Clean(f.Hint), Log: f.LogPath})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.say(events...)
}

// Close ends the display. Steps that still run are said to have stopped. It
// may be called twice; events that come later are still printed.
func (p *Display) Close() {
	if !p.finish() {
		return
	}
	close(p.stop)
	<-p.stopped
}

func (p *Display) finish() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	now := time.Now()
	var events []Event
	for _, j := range p.now.jobs {
		if j.running() && !j.over {
			events = append(events, Event{Event: StepDone, Cell: j.id, Step: j.step, Status: Stopped, Seconds: inSeconds(now.Sub(j.since))})
		}
	}
	if !p.now.begun.IsZero() {
		events = append(events, Event{Event: RunDone, Seconds: inSeconds(now.Sub(p.now.begun))})
	}
	p.closed, p.now = true, moment{}
	p.say(events...)
	return true
}

// tick draws again while time passes.
func (p *Display) tick() {
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
func (p *Display) say(events ...Event) {
	for i, e := range events {
		events[i] = p.stamp(e)
	}
	p.now.time = time.Now()
	p.view.draw(append(p.pending, events...), p.now)
	p.pending = nil
}

// stamp completes an event: names are foreign text too.
func (p *Display) stamp(e Event) Event {
	e.Schema, e.Time = EventSchema, time.Now().UTC()
	e.Cell, e.Step = term.OneLine(e.Cell), term.OneLine(e.Step)
	e.Text, e.Hint, e.Log = diag.Redact(e.Text), diag.Redact(e.Hint), term.OneLine(e.Log)
	return e
}

// job returns what is known of a cell, nil if nothing goes on there.
func (p *Display) job(cell string) *job {
	i := slices.IndexFunc(p.now.jobs, func(j *job) bool { return j.id == cell })
	if i < 0 {
		return nil
	}
	return p.now.jobs[i]
}

// estimate is a likely time as an event has it, nil where it is not known.
func estimate(d time.Duration, known bool) *float64 {
	if !known {
		return nil
	}
	return inSeconds(d)
}

func inSeconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}

// words joins what an event or a job has to say, without gaps for what is empty.
func words(parts ...string) string {
	var said []string
	for _, part := range parts {
		if part != "" {
			said = append(said, part)
		}
	}
	return strings.Join(said, "  ")
}
