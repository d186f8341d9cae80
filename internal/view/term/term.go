// Package term prints for people: a text that is safe to show, a table, a list, an
// error. What moves while something runs is [builder/internal/view/progress]'s.
//
// Its rules:
//
//   - Nothing is said by colour alone, nor by a sign alone: there is always a word.
//   - Whatever comes from a build is hostile. Control characters and escape
//     sequences never reach the terminal, nor commands the server that reads the
//     log; see [Clean] for a text, and [Guard] for all that is printed.
package term

import (
	"io"

	"golang.org/x/term"
)

// A descriptor is what a terminal can be behind: a file, or a [Guard].
type descriptor interface{ Fd() uintptr }

// Is reports whether w is a terminal.
func Is(w io.Writer) bool {
	file, ok := w.(descriptor)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Width returns the columns of the terminal behind w, 0 if it is none.
func Width(w io.Writer) int {
	if !Is(w) {
		return 0
	}
	width, _ := Size(w)
	return width
}

// Size returns the columns and lines of the terminal behind w. Of one that does not
// know them, such as a serial line, and of what is none, they are those of the
// classical screen.
func Size(w io.Writer) (width, height int) {
	if file, ok := w.(descriptor); ok {
		width, height, err := term.GetSize(int(file.Fd()))
		if err == nil && width > 0 && height > 0 {
			return width, height
		}
	}
	return 80, 24
}
