package progress

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"builder/internal/view/term"
)

// heartbeat is the longest silence of a running step in a plain log. It keeps CI
// systems from taking a long compilation for a hung job.
const heartbeat = 30 * time.Second

// maxPause is the longest silence of a step that says nothing new. Some CI systems end a
// job after ten minutes of silence.
const maxPause = 5 * time.Minute

// plain writes a log: one line with the time per event.
type plain struct {
	w       io.Writer
	undated bool // the log's reader adds times itself
}

func (p *plain) draw(events []event, now moment) {
	var b bytes.Buffer
	for _, e := range events {
		p.event(&b, e, now)
	}
	p.beat(&b, now)
	write(p.w, &b)
}

// event writes the line of an event. A fault gets none: [term.PrintError] prints it.
func (p *plain) event(b *bytes.Buffer, e event, now moment) {
	switch e.kind {
	case fault:
	case logLine:
		cell := ""
		if now.several() {
			cell = e.cell
		}
		p.line(b, now, cell, e.said())
	default:
		p.line(b, now, now.named(e), e.step, e.said())
	}
}

// named returns the cell of an event. In a run of one cell, only the first step and the end
// of the cell name it.
func (m moment) named(e event) string {
	if len(m.jobs) == 1 && m.jobs[0].planned && e.step != "" && m.jobs[0].since.After(m.jobs[0].begun) {
		return ""
	}
	return e.cell
}

// beat writes a line for each step silent for too long. While the step says nothing new,
// its lines come at 30 seconds, one minute, two and so on, and at least every 5 minutes.
func (p *plain) beat(b *bytes.Buffer, now moment) {
	for _, j := range now.jobs {
		pause := heartbeat
		if j.says() == j.said {
			pause = max(pause, min(j.shown.Sub(j.since), maxPause))
		}
		if !j.running() || j.over || now.time.Sub(j.shown) < pause {
			continue
		}
		j.shown, j.said = now.time, j.says()
		text := "running " + term.Duration(now.time.Sub(j.since))
		if says := j.says(); says != "" {
			text += ": " + term.Truncate(says, maxText)
		}
		e := event{cell: term.OneLine(j.id), step: term.OneLine(j.name)}
		p.line(b, now, now.named(e), e.step, text)
	}
}

func (p *plain) line(b *bytes.Buffer, now moment, parts ...string) {
	if !p.undated {
		parts = append([]string{now.time.Format(time.TimeOnly)}, parts...)
	}
	b.WriteString(strings.TrimRight(join(" ", parts...), " ") + "\n")
}

// maxGroup bounds the log lines in the group of a step. The group holds the last lines.
const maxGroup = 500

// maxLine bounds a log line, in columns. Some linkers print lines of megabytes.
const maxLine = 500

// github writes a log for GitHub Actions: a group with the log of each step, and
// annotations for errors. A group is written after its step has ended, because steps of
// several cells run at the same time and groups cannot overlap.
type github struct {
	plain
	logs map[string]*tail // of the running step, by cell
}

// tail is the end of a log.
type tail struct {
	lines []string
	cut   int // number of earlier lines
}

func (t *tail) add(line string) {
	t.lines = append(t.lines, term.Truncate(line, maxLine))
	if len(t.lines) > maxGroup {
		t.lines, t.cut = t.lines[1:], t.cut+1
	}
}

func (g *github) draw(events []event, now moment) {
	var b, lines bytes.Buffer
	for _, e := range events {
		switch e.kind {
		case stepStarted:
			g.logs[e.cell] = &tail{}
		case logLine:
			if log := g.logs[e.cell]; log != nil {
				log.add(e.text)
			}
		case stepDone:
			g.group(&b, e)
		case fault:
			text := e.text
			if e.hint != "" {
				text += "  hint: " + e.hint
			}
			at := ""
			if e.at.File != "" {
				at = "file=" + property.Replace(term.Clean(e.at.File)) + ","
			}
			if e.at.Line > 0 {
				at += fmt.Sprintf("line=%d,", e.at.Line)
			}
			fmt.Fprintf(&b, "::error %stitle=%s::%s\n", at, property.Replace(e.code), data.Replace(text))
		default:
			g.event(&lines, e, now)
			quiet(&b, &lines)
		}
	}
	g.beat(&lines, now)
	quiet(&b, &lines)
	write(g.w, &b)
}

// group writes the group of an ended step with its log.
func (g *github) group(b *bytes.Buffer, e event) {
	fmt.Fprintf(b, "::group::%s\n", data.Replace(e.cell+" "+e.step+" "+e.said()))
	if log := g.logs[e.cell]; log != nil {
		if log.cut > 0 {
			fmt.Fprintf(b, "(%d earlier lines are in the log of the step)\n", log.cut)
		}
		for _, line := range log.lines {
			b.WriteString(term.Inert(line) + "\n")
		}
	}
	delete(g.logs, e.cell)
	b.WriteString("::endgroup::\n")
}

// quiet moves lines to b that GitHub Actions never reads as commands.
func quiet(b, lines *bytes.Buffer) {
	for line := range strings.Lines(lines.String()) {
		b.WriteString(term.Inert(line))
	}
	lines.Reset()
}

// The escapes for a command's text and properties.
var (
	data     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// write writes a frame. Nothing is written for an empty one.
func write(w io.Writer, b *bytes.Buffer) {
	if b.Len() > 0 {
		_, _ = w.Write(b.Bytes()) // there is no other place to report an error
	}
}

// join joins the non-empty parts.
func join(by string, parts ...string) string {
	var said []string
	for _, part := range parts {
		if part != "" {
			said = append(said, part)
		}
	}
	return strings.Join(said, by)
}
