package term

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
)

// A frame is one write between these: the terminal shows it at once if it
// knows synchronised output (mode 2026), and never shows a travelling cursor.
// The cursor is visible again at the end of every frame.
const (
	beginFrame = "\x1b[?2026h\x1b[?25l"
	endFrame   = "\x1b[?25h\x1b[?2026l"
	eraseLine  = "\x1b[K"
	eraseBelow = "\x1b[J"
)

var signs = map[kind]struct {
	sign  string
	style lipgloss.Style
}{
	done:    {"✓", good},
	failed:  {"✗", bad},
	stopped: {"-", faint},
}

// live keeps one line for each running step at the bottom of what has been
// said. The cursor rests below the last of them.
type live struct {
	w      io.Writer
	size   func() (width, height int)
	colour bool
	width  int
	shown  []string // the lines on the screen that move
}

func (l *live) draw(now time.Time, events []event, running []*task) {
	width, height := l.size()
	width = max(1, width)
	lines := block(running, now, width-1, height-1)
	kept := l.keep(events)
	if len(kept) == 0 && width == l.width && slices.Equal(lines, l.shown) {
		return
	}
	var b strings.Builder
	b.WriteString(beginFrame + up(rows(l.shown, width)))
	for _, line := range kept {
		b.WriteString(line + eraseLine + "\n")
	}
	for _, line := range lines {
		b.WriteString(l.paint(busy, line) + eraseLine + "\n")
	}
	b.WriteString(eraseBelow + endFrame)
	_, _ = io.WriteString(l.w, b.String()) // nobody is left to be told
	l.width, l.shown = width, lines
}

// keep returns the lines that stay. That a step started is seen from its
// moving line.
func (l *live) keep(events []event) []string {
	var lines []string
	for _, e := range events {
		switch e.kind {
		case started:
		case noted:
			lines = append(lines, e.text)
		default:
			s := signs[e.kind]
			text := words(oneLine(e.cell), pad(oneLine(e.step)), e.text)
			lines = append(lines, l.paint(s.style, s.sign)+" "+text)
		}
	}
	return lines
}

// paint colours the first column of s, which holds the sign.
func (l *live) paint(style lipgloss.Style, s string) string {
	sign, rest, found := strings.Cut(s, " ")
	if !l.colour {
		return s
	}
	if found {
		rest = " " + rest
	}
	return style.Render(sign) + rest
}

// block returns the lines for the running steps, cut to the width and, where
// more run than fit on the screen, to the height.
func block(running []*task, now time.Time, width, height int) []string {
	var lines []string
	for i, t := range running {
		if i >= height-1 && len(running) > height {
			lines = append(lines, truncate(fmt.Sprintf("… and %d more", len(running)-i), width))
			break
		}
		elapsed := fmt.Sprintf("%4s", now.Sub(t.since).Truncate(time.Second))
		line := "▸ " + words(oneLine(t.cell), pad(oneLine(t.step)), elapsed, t.last)
		lines = append(lines, truncate(line, width))
	}
	return lines
}

// rows counts the rows that lines take in a terminal of this width. It matters
// after a terminal became narrower: it has wrapped the lines that were there.
func rows(lines []string, width int) int {
	n := 0
	for _, line := range lines {
		n += max(1, (lipgloss.Width(line)+width-1)/width)
	}
	return n
}

func up(n int) string {
	if n == 0 {
		return "\r"
	}
	return fmt.Sprintf("\r\x1b[%dA", n)
}

// pad aligns the names of steps, which are short.
func pad(step string) string { return fmt.Sprintf("%-6s", step) }
