package term

import (
	"io"
	"strings"

	"charm.land/lipgloss/v2"
)

// Indented prints a line two columns to the right. What is longer than width
// columns is wrapped, shorter lines keep their blanks; a width of 0 never wraps.
func Indented(w io.Writer, width int, line string) {
	for _, part := range wrap(strings.TrimRight(Clean(line), " \n"), width-2) {
		_, _ = lipgloss.Fprint(w, strings.TrimRight("  "+part, " ")+"\n")
	}
}

// Labelled prints a text behind a label. It is wrapped to width columns, and
// further lines are indented; a width of 0 never wraps (see [Width]).
func Labelled(w io.Writer, width int, label, text string) {
	// Colour is taken out again where w, NO_COLOR or TERM refuse it.
	_, _ = lipgloss.Fprint(w, labelled(bold, OneLine(label)+": ", OneLine(text), width))
}
