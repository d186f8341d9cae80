package progress

import (
	"fmt"
	"strings"

	"builder/internal/view/term"
)

// maxGroup bounds the log lines in the group of a step. The group holds the last lines.
const maxGroup = 500

// maxLine bounds a log line, in columns. Some linkers print lines of megabytes.
const maxLine = 500

// github writes a log for GitHub Actions: a group with the log of each step, and
// annotations for errors. A group is written after its step has ended, because steps of
// several cells run at the same time and groups cannot overlap.
type github struct {
	plain
	logs map[string]*tail // by cell
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

func (g *github) draw(events []Event, now moment) {
	var b strings.Builder
	for _, e := range events {
		switch e.Event {
		case StepStarted:
			g.logs[e.Cell] = &tail{}
		case LogLine:
			if t := g.logs[e.Cell]; t != nil {
				t.add(e.Text)
			}
		case StepDone:
			g.group(&b, e)
		case Fault:
			fmt.Fprintf(&b, "::error title=%s::%s\n", property.Replace(e.Code), data.Replace(words(e.Text, hint(e.Hint))))
		default:
			quiet(&b, func(b *strings.Builder) { g.event(b, e, now) })
		}
	}
	quiet(&b, func(b *strings.Builder) { g.beat(b, now) })
	g.flush(&b)
}

// group writes the group of an ended step with its log.
func (g *github) group(b *strings.Builder, e Event) {
	fmt.Fprintf(b, "::group::%s\n", data.Replace(e.Cell+" "+e.Step+" "+e.said()))
	if t := g.logs[e.Cell]; t != nil {
		if t.cut > 0 {
			fmt.Fprintf(b, "(%d earlier lines are in the log of the step)\n", t.cut)
		}
		for _, line := range t.lines {
			b.WriteString(term.Inert(line) + "\n")
		}
	}
	delete(g.logs, e.Cell)
	b.WriteString("::endgroup::\n")
}

// quiet writes lines that GitHub Actions never reads as commands.
func quiet(b *strings.Builder, write func(*strings.Builder)) {
	var lines strings.Builder
	write(&lines)
	for line := range strings.Lines(lines.String()) {
		b.WriteString(term.Inert(line))
	}
}

func hint(text string) string {
	if text == "" {
		return ""
	}
	return "hint: " + text
}

// The escapes for a command's text and properties.
var (
	data     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
