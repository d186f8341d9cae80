package progress

import (
	"fmt"
	"io"
	"strings"
	"time"

	"builder/internal/view/term"
)

// heartbeat is the longest silence of a running step in a plain log. It keeps CI
// systems from taking a long compilation for a hung job.
const heartbeat = 30 * time.Second

// plain writes a log: one line with the time per event.
type plain struct {
	w       io.Writer
	undated bool // the log's reader adds times itself
}

func (p *plain) draw(events []Event, now moment) {
	var b strings.Builder
	for _, e := range events {
		p.event(&b, e, now)
	}
	p.beat(&b, now)
	p.flush(&b)
}

// event writes the line of an event. The start of a run or cell and the bytes of transfers
// get no line, because steps show both.
func (p *plain) event(b *strings.Builder, e Event, now moment) {
	switch e.Event {
	case RunStarted, CellStarted, Bytes, Fault, RunDone:
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

// beat writes a line for each step silent for too long.
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
		if says := j.says(); says != "" {
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
		_, _ = io.WriteString(p.w, b.String()) // there is no other place to report an error
	}
}

// counted formats a number of things: 1 cell, 2 cells.
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
