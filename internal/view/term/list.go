package term

import (
	"io"
	"strings"

	"charm.land/lipgloss/v2"
)

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
