package term

import (
	"fmt"
	"io"
)

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
