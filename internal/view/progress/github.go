package progress

import (
	"fmt"
	"strings"

	"builder/internal/view/term"
)

// maxGroup bounds the lines of a step that a group shows: the end of its log.
const maxGroup = 500

// maxLine bounds such a line, in columns: linkers are known to print megabytes.
const maxLine = 500

// github is a log of GitHub Actions: a group for each step, which opens to its
// log, and annotations for faults. Steps of several cells run at a time and groups
// cannot, so that one is written when its step has ended.
type github struct {
	plain
	logs map[string]*tail // by cell
}

// tail is the end of a log.
type tail struct {
	lines []string
	cut   int // lines before them
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

// group writes a step that has ended, with its log inside.
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

// quiet writes lines that are no commands, whatever they say.
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

// The escapes of a command's text and of its properties.
var (
	data     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
