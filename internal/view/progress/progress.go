// Package progress shows a run while it is in progress: as moving lines on a terminal,
// a log, or a log with groups and annotations for GitHub Actions.
// It receives events and knows only the names of cells.
// [builder/internal/view/term] prints the results at the end.
//
//   - A permanent line is written once. Only the lines of running steps are redrawn,
//     and each frame leaves the terminal in a normal state, so that a killed tool
//     leaves nothing to repair.
//   - Every colour and every sign is accompanied by a word.
package progress

import (
	"context"
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

// maxText bounds the error text of one event.
const maxText = 300

// A Display shows running steps. Callers report events in any order and from any
// goroutine. A view decides their appearance.
type Display struct {
	Format Format // never Auto

	mu            sync.Mutex
	view          view
	lines         bool // the view shows log lines
	now           moment
	pending       []event // log lines for the next frame
	closed        bool
	stop          chan struct{}
	stopped       chan struct{}
	stopListening func() // stops waiting for an interrupt, after answering one that arrived
}

// A view draws permanent events and the current state.
type view interface {
	draw(events []event, now moment)
}

// A moment is the state of a display at one time.
type moment struct {
	time  time.Time
	begun time.Time // start of the run, zero if there is none
	jobs  []*job    // the cells of the run, then other tasks
}

// several reports whether lines must name their cell.
func (m moment) several() bool { return len(m.jobs) > 1 }

// Begin shows the progress of a command on w in the requested format until [Display.End].
// If ctx is cancelled, it says so.
func Begin(ctx context.Context, w io.Writer, asked Format, verbose bool) (*Display, error) {
	options, err := Detect(w, asked)
	if err != nil {
		return nil, err
	}
	options.Verbose = verbose
	p := New(w, options)
	p.stopListening = p.answer(ctx)
	return p, nil
}

// New starts a display on w. The caller must close it after the last event.
func New(w io.Writer, options Options) *Display {
	p := &Display{
		Format: options.Format, view: newView(w, options), lines: options.Verbose || options.Format == GitHub,
		stop: make(chan struct{}), stopped: make(chan struct{}), stopListening: func() {},
	}
	go p.tick()
	return p
}

// stopping is printed as soon as an interrupt arrives, because running steps take a
// moment to end.
const stopping = "stopping the running steps (interrupt again to stop at once)"

// answer prints stopping as soon as ctx is cancelled, until stopListening is called.
func (p *Display) answer(ctx context.Context) (stopListening func()) {
	answered := sync.OnceFunc(func() { p.Note(stopping) })
	stop := context.AfterFunc(ctx, answered)
	return sync.OnceFunc(func() {
		stop()
		if ctx.Err() != nil { // the context closes Done before it calls its functions
			answered()
		}
	})
}

// Run announces the cells to build. Each cell has one line from its first step until
// CellDone.
func (p *Display) Run(cells []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.begun = time.Now()
	for _, c := range cells {
		p.now.jobs = append(p.now.jobs, newJob(c, true))
	}
	label(p.now.jobs)
	p.say()
}

// Start reports the start of a cell's step.
func (p *Display) Start(cell, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	j := p.job(cell)
	if j == nil {
		j = newJob(cell, false)
		p.now.jobs = append(p.now.jobs, j)
	}
	if j.begun.IsZero() {
		j.begun = now
	}
	j.step = step{name: name, since: now, shown: now}
	p.say(event{kind: stepStarted, cell: cell, step: name})
}

// Line reports a line of the log of the cell's step. It appears in the next frame. A
// display with room for one line shows the latest.
func (p *Display) Line(cell, line string) {
	line = newest(diag.Redact(line))
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.job(cell)
	if j == nil || j.over {
		return
	}
	if strings.ContainsFunc(line, unicode.IsLetter) { // skip the underlining of compilers
		j.last = line
	}
	if p.lines {
		p.pending = append(p.pending, cleaned(event{kind: logLine, cell: cell, step: j.name, text: line}))
	}
}

// newest returns the last non-blank line of s. A progress bar overwrites itself, so
// this is its latest state.
func newest(s string) string {
	lines := strings.Split(term.Clean(s), "\n")
	for _, line := range slices.Backward(lines) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

// Done reports the end of a step: after d, from a cache, or with an error. The step
// need not have been started.
func (p *Display) Done(cell, step string, d time.Duration, fromCache bool, err error) {
	e := event{kind: stepDone, cell: cell, step: step, status: done, took: d}
	switch {
	case err != nil:
		e.status, e.text = failed, term.OneLine(err.Error())
	case fromCache:
		e.status = cached
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if j := p.job(cell); j != nil {
		if j.name == step {
			j.over = true
		}
		if !j.planned && j.over {
			p.now.jobs = slices.DeleteFunc(p.now.jobs, func(other *job) bool { return other == j })
		}
	}
	p.say(e)
}

// CellDone reports the end of a cell: its status, whether the status is good, the
// duration of its steps, and a short text or "".
func (p *Display) CellDone(cell, status string, good bool, d time.Duration, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j := p.job(cell); j != nil {
		j.ended, j.failed = true, !good
	}
	p.say(event{kind: cellDone, cell: cell, status: status, took: d, text: term.OneLine(text)})
}

// Note prints a message that belongs to no step.
func (p *Display) Note(format string, args ...any) {
	text := strings.TrimRight(term.Clean(fmt.Sprintf(format, args...)), "\n")
	var events []event
	for line := range strings.SplitSeq(text, "\n") {
		events = append(events, event{kind: note, text: line})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.say(events...)
}

// Close ends the display and reports running steps as stopped. It may be called twice.
// Later events are still printed.
func (p *Display) Close() {
	p.stopListening()
	if p.finish() {
		close(p.stop)
		<-p.stopped
	}
}

func (p *Display) finish() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	now := time.Now()
	var events []event
	for _, j := range p.now.jobs {
		if j.running() && !j.over {
			events = append(events, event{kind: stepDone, cell: j.id, step: j.name, status: stopped, took: now.Sub(j.since)})
		}
	}
	p.closed, p.now = true, moment{}
	p.say(events...)
	return true
}

// End closes the display and reports err to CI servers with annotations. It returns err,
// which [term.PrintError] prints for users.
func (p *Display) End(err error) error {
	p.Close()
	var events []event
	for _, f := range diag.All(err) {
		events = append(events, event{kind: fault, code: f.Code.String(), at: f.Pos, text: term.Clean(f.Error()), hint: term.Clean(f.Hint)})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.say(events...)
	return err
}

// tick redraws the display at every frame.
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

// say draws a frame with new events. The caller holds the lock.
func (p *Display) say(events ...event) {
	for i, e := range events {
		events[i] = cleaned(e)
	}
	p.now.time = time.Now()
	p.view.draw(append(p.pending, events...), p.now)
	p.pending = nil
}

// cleaned cleans the texts of an event, because names are not trusted either.
func cleaned(e event) event {
	e.cell, e.step = term.OneLine(e.cell), term.OneLine(e.step)
	e.text, e.hint = diag.Redact(e.text), diag.Redact(e.hint)
	return e
}

// job returns the job of a cell, or nil.
func (p *Display) job(cell string) *job {
	i := slices.IndexFunc(p.now.jobs, func(j *job) bool { return j.id == cell })
	if i < 0 {
		return nil
	}
	return p.now.jobs[i]
}
