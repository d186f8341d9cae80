// Package term prints texts, tables, lists and errors for users.
// [builder/internal/view/progress] shows running work.
//
// Its rules:
//
//   - Every colour and every sign is accompanied by a word.
//   - Output of a build is hostile. Control characters and escape sequences never
//     reach the terminal, and commands never reach a CI server that reads the log.
//     [Clean] handles a single text, and [Guard] handles all output.
package term

import (
	"io"

	"golang.org/x/term"
)

// A descriptor is a writer with a file descriptor: a file or a [Guard].
type descriptor interface{ Fd() uintptr }

// Is reports whether w is a terminal.
func Is(w io.Writer) bool {
	file, ok := w.(descriptor)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Width returns the columns of the terminal w, or 0 if w is not a terminal.
func Width(w io.Writer) int {
	if !Is(w) {
		return 0
	}
	width, _ := Size(w)
	return width
}

// Size returns the columns and lines of the terminal w. It returns 80 and 24 if w is
// not a terminal or, like a serial line, has no size.
func Size(w io.Writer) (width, height int) {
	if file, ok := w.(descriptor); ok {
		width, height, err := term.GetSize(int(file.Fd()))
		if err == nil && width > 0 && height > 0 {
			return width, height
		}
	}
	return 80, 24
}
