package progress

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"builder/internal/base/size"
	"builder/internal/view/term"
)

// Each frame is one write between beginFrame and endFrame. A terminal with synchronised
// output (mode 2026) shows it at once and without a moving cursor. The cursor is
// visible again after every frame.
const (
	beginFrame = "\x1b[?2026h\x1b[?25l"
	endFrame   = "\x1b[?25h\x1b[?2026l"
	eraseLine  = "\x1b[K"
	eraseBelow = "\x1b[J"
)

// look is the sign and the colour of a state. A state without its own look is shown as
// bad. The word of the state follows the sign.
type look struct {
	sign  string
	paint func(...string) string
}

var looks = map[string]look{
	done: {"✓", term.Good}, cached: {"✓", term.Good}, "pass": {"✓", term.Good},
	stopped: {"-", term.Faint}, "skipped": {"-", term.Faint},
}

func lookOf(status string) look {
	if l, ok := looks[status]; ok {
		return l
	}
	return look{"✗", term.Bad}
}

// live keeps one line per running cell below the permanent lines, and the totals of the
// run below those. The cursor rests below the last line.
type live struct {
	w      io.Writer
	size   func() (width, height int)
	colour bool
	width  int
	shown  []string // the redrawn lines on the screen
}

func (l *live) draw(events []event, now moment) {
	width, height := l.size()
	width = max(1, width)
	lines := block(now, width-1, height-1)
	kept := l.keep(events, now)
	if len(kept) == 0 && width == l.width && slices.Equal(lines, l.shown) {
		return
	}
	var b strings.Builder
	b.WriteString(beginFrame + up(l.shown, width))
	for _, line := range kept {
		b.WriteString(line + eraseLine + "\n")
	}
	for _, line := range lines {
		b.WriteString(l.paint(term.Busy, line) + eraseLine + "\n")
	}
	b.WriteString(eraseBelow + endFrame)
	_, _ = io.WriteString(l.w, b.String()) // there is no other place to report an error
	l.width, l.shown = width, lines
}

// keep returns the permanent lines: a table with one row for each finished cell. The
// steps of a cell appear only in its moving line.
func (l *live) keep(events []event, now moment) []string {
	jobs := map[string]*job{}
	for _, j := range now.jobs {
		jobs[term.OneLine(j.id)] = j
	}
	var lines []string
	for _, e := range events {
		j := cmp.Or(jobs[e.cell], &job{label: e.cell})
		look := lookOf(e.status)
		row := ""
		switch {
		case e.kind == logLine && now.several():
			lines = append(lines, j.label+" "+e.said())
		case e.kind == logLine || e.kind == note:
			lines = append(lines, e.text)
		case e.kind == cellDone:
			row = join("  ", fmt.Sprintf("%-12s %7s", e.status, term.Duration(e.took)), e.cell, e.text)
		case e.kind == stepDone && !j.planned:
			row = join("  ", e.cell, pad(e.step), e.ended())
		}
		if row != "" {
			lines = append(lines, l.paint(look.paint, look.sign+" "+strings.TrimRight(row, " ")))
		}
	}
	return lines
}

// paint colours the first column of s, the sign. Words keep the terminal's own colour,
// which is readable on any background.
func (l *live) paint(colour func(...string) string, s string) string {
	sign, rest, found := strings.Cut(s, " ")
	if !l.colour {
		return s
	}
	if found {
		rest = " " + rest
	}
	return colour(sign) + rest
}

// block returns the moving lines: the running cells, then the totals of the run. It
// cuts them to the width and the height of the screen.
func block(now moment, width, height int) []string {
	var running []*job
	for _, j := range now.jobs {
		if j.running() {
			running = append(running, j)
		}
	}
	var sum []string
	if !now.begun.IsZero() && height > 1 {
		sum = []string{now.sum(width)}
		height--
	}
	shown := running
	if len(running) > height {
		shown = running[:max(0, height-1)]
	}
	var lines []string
	for _, j := range shown {
		lines = append(lines, j.line(now.time, width))
	}
	if more := len(running) - len(shown); more > 0 {
		lines = append(lines, term.Truncate(fmt.Sprintf("… and %d more", more), width))
	}
	return append(lines, sum...)
}

// line returns the moving line of a job: its step, the elapsed time and its latest
// output. It cuts the middle out of a long name.
func (j *job) line(now time.Time, width int) string {
	name := shorten(j.label, max(12, width*2/5))
	step, from := term.OneLine(j.name), j.since
	if j.planned {
		from = j.begun // the line of a cell covers all its steps
	}
	spent := fmt.Sprintf("%4s", now.Sub(from).Truncate(time.Second))
	line := join("  ", "▸ "+name, pad(step), spent)
	if over := term.Columns(line) - width; over > 0 {
		line = join("  ", "▸ "+shorten(name, max(8, term.Columns(name)-over)), pad(step), spent)
	}
	return term.Truncate(join("  ", line, j.says()), width)
}

// sum returns the last line: the number of cells in each state and the elapsed time.
func (m moment) sum(width int) string {
	all, over, running, bad := 0, 0, 0, 0
	for _, j := range m.jobs {
		switch {
		case !j.planned:
			continue
		case j.ended:
			over++
		case j.running():
			running++
		}
		if all++; j.failed {
			bad++
		}
	}
	text := fmt.Sprintf("= %d of %s done", over, size.Count(all, "cell"))
	if bad > 0 {
		text += fmt.Sprintf(" (%d failed)", bad)
	}
	text += fmt.Sprintf(", %d running, %d waiting, %s", running, all-over-running, m.time.Sub(m.begun).Truncate(time.Second))
	return term.Truncate(text, width)
}

// up moves the cursor up to the first of the lines already drawn, to the first column. A
// terminal that became narrower has wrapped them.
func up(lines []string, width int) string {
	n := 0
	for _, line := range lines {
		n += max(1, (term.Columns(line)+width-1)/width)
	}
	if n == 0 {
		return "\r"
	}
	return fmt.Sprintf("\r\x1b[%dA", n)
}

// pad aligns the short names of steps.
func pad(step string) string { return fmt.Sprintf("%-6s", step) }
