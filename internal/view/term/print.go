package term

import (
	"fmt"
	"io"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
)

var (
	bad  = lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true)
	bold = lipgloss.NewStyle().Bold(true)
)

// These render a text in the colour of success, failure, running and unfinished work.
// Magenta is readable on white and on black.
var (
	Good  = lipgloss.NewStyle().Foreground(lipgloss.Green).Render
	Bad   = bad.Render
	Busy  = lipgloss.NewStyle().Foreground(lipgloss.Magenta).Render
	Faint = lipgloss.NewStyle().Faint(true).Render
)

// Duration formats a duration: tenths of a second below a minute, else whole seconds.
func Duration(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// Columns returns the number of columns of a line.
func Columns(line string) int { return lipgloss.Width(line) }

// A Printer holds the output streams of a command. Stdout carries only the result;
// everything else goes to Stderr.
type Printer struct{ Stdout, Stderr io.Writer }

// Note prints a line to stderr.
func (p Printer) Note(format string, args ...any) { fmt.Fprintf(p.Stderr, format+"\n", args...) }

// Say prints a line to stdout.
func (p Printer) Say(format string, args ...any) { fmt.Fprintf(p.Stdout, format+"\n", args...) }

// Print prints a value as JSON, or calls text.
func (p Printer) Print(asJSON bool, value any, text func()) error {
	if asJSON {
		return p.JSON(value)
	}
	text()
	return nil
}

// JSON prints a value as JSON.
func (p Printer) JSON(value any) error { return JSON(p.Stdout, value, "  ") }

// Table prints rows in the width of the terminal.
func (p Printer) Table(header []string, rows [][]string) {
	Table(p.Stdout, Width(p.Stdout), header, rows)
}

// Indented prints a line indented by two columns. It wraps a line longer than width
// columns; shorter lines keep their blanks. A width of 0 never wraps.
func Indented(w io.Writer, width int, line string) {
	for _, part := range wrap(strings.TrimRight(Clean(line), " \n"), width-2) {
		_, _ = lipgloss.Fprint(w, strings.TrimRight("  "+part, " ")+"\n")
	}
}

// Labelled prints a text after a label. It wraps to width columns and indents further
// lines. A width of 0 never wraps (see [Width]).
func Labelled(w io.Writer, width int, label, text string) {
	// Fprint removes colour if w, NO_COLOR or TERM refuse it.
	_, _ = lipgloss.Fprint(w, labelled(bold, OneLine(label)+": ", OneLine(text), width))
}
