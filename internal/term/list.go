package term

import (
	"io"

	"charm.land/lipgloss/v2"
)

// Labelled prints a text behind a label. It is wrapped to width columns, and
// further lines are indented; a width of 0 never wraps (see [Width]).
func Labelled(w io.Writer, width int, label, text string) {
	// Colour is taken out again where w, NO_COLOR or TERM refuse it.
	_, _ = lipgloss.Fprint(w, labelled(bold, oneLine(label)+": ", oneLine(text), width))
}
