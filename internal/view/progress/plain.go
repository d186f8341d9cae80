package progress

import (
	"fmt"
	"io"
	"strings"
	"time"

	"builder/internal/view/term"
)

// heartbeat is how long a running step may be silent in a plain log, so that a
// CI system does not take a long compilation for a dead one.
const heartbeat = 30 * time.Second

// plain is a log: one line with the time for everything that happened.
type plain struct {
	w       io.Writer
	undated bool // where the reader of the log adds times
}

func (p *plain) draw(events []Event, now moment) {
	var b strings.Builder
	for _, e := range events {
		p.event(&b, e, now)
	}
	p.beat(&b, now)
	p.flush(&b)
}

// event writes the line of an event. That cells begin and that bytes move is seen
// from steps.
func (p *plain) event(b *strings.Builder, e Event, now moment) {
	switch e.Event {
	case CellStarted, Bytes, Fault, RunDone:
	case RunStarted:
		if e.Estimate != nil && *e.Estimate > 0 {
			p.line(b, now, fmt.Sprintf("%s, likely to take about %s", counted(len(e.Cells), "cell"), about(duration(*e.Estimate))))
		}
	case LogLine:
		cell := ""
		if now.several() {
			cell = e.Cell
		}
		p.line(b, now, cell, e.said())
	default:
		p.line(b, now, e.Cell, e.Step, e.said())
	}
}

// beat mentions the steps that were silent for long.
func (p *plain) beat(b *strings.Builder, now moment) {
	for _, j := range now.jobs {
		if !j.running() || j.over || now.time.Sub(j.shown) < heartbeat {
			continue
		}
		j.shown = now.time
		text := "running "
		if j.waits {
			text = "waiting "
		}
		text += seconds(now.time.Sub(j.since))
		if says := j.says(now.time); says != "" {
			text += ": " + term.Truncate(says, maxText)
		}
		p.line(b, now, term.OneLine(j.id), term.OneLine(j.step), text)
	}
}

func (p *plain) line(b *strings.Builder, now moment, parts ...string) {
	if !p.undated {
		parts = append([]string{now.time.Format(time.TimeOnly)}, parts...)
	}
	var said []string
	for _, part := range parts {
		if part != "" {
			said = append(said, part)
		}
	}
	b.WriteString(strings.TrimRight(strings.Join(said, " "), " ") + "\n")
}

func (p *plain) flush(b *strings.Builder) {
	if b.Len() > 0 {
		_, _ = io.WriteString(p.w, b.String()) // nobody is left to be told
	}
}

// counted is a number of things in words: 1 cell, 2 cells.
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
