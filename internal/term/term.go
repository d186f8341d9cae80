// Package term is how the tool speaks to people: progress while it works, an
// error when it fails, a table when it is done.
//
// Its rules:
//
//   - What is shown for progress or an error goes to stderr; stdout is the result.
//   - Nothing is said by colour alone, nor by a sign alone: there is always a word.
//   - Whatever comes from a build is hostile. Control characters and escape
//     sequences never reach the terminal; see [Clean].
//   - A line that is kept is written once. Only the lines of running steps are
//     drawn again, and each frame leaves the terminal as it found it, so that a
//     tool that is killed leaves nothing to repair.
package term

import (
	"io"
	"os"

	"charm.land/lipgloss/v2"
	"golang.org/x/term"
)

// Format is how progress is shown.
type Format string

// The formats of progress.
const (
	Live   Format = "live"   // lines that move, on a terminal
	Plain  Format = "plain"  // a log with times
	GitHub Format = "github" // a log of GitHub Actions, with groups and annotations
	JSON   Format = "json"   // an [Event] in each line
)

// Formats lists the formats of progress.
func Formats() []Format { return []Format{Live, Plain, GitHub, JSON} }

// Options say how progress is shown. The zero value is a plain log.
type Options struct {
	Format Format
	// Colour allows colour; only used together with Live.
	Colour bool
	// Size returns columns and lines of the terminal; nil means 80 by 24. It is
	// asked before every frame, which is how a resize is noticed.
	Size func() (width, height int)
	// Verbose shows the lines of the steps' logs too.
	Verbose bool
}

// Detect finds out what w can show. getenv is usually [os.Getenv]; GITHUB_ACTIONS,
// NO_COLOR and TERM are asked for. A dumb terminal gets the log, which a screen
// reader can follow.
func Detect(w io.Writer, getenv func(string) string) Options {
	if getenv("GITHUB_ACTIONS") == "true" {
		return Options{Format: GitHub}
	}
	file, ok := w.(*os.File)
	name := getenv("TERM")
	if !ok || name == "" || name == "dumb" || !term.IsTerminal(int(file.Fd())) {
		return Options{Format: Plain}
	}
	return Options{
		Format: Live,
		Colour: getenv("NO_COLOR") == "",
		Size:   func() (int, int) { return size(file) },
	}
}

// Width returns the columns of the terminal behind w, 0 if it is none.
func Width(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	width, _ := size(file)
	return width
}

// size falls back to the classical screen for terminals that do not know
// theirs, such as a serial line.
func size(file *os.File) (width, height int) {
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

var (
	good  = lipgloss.NewStyle().Foreground(lipgloss.Green)
	bad   = lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true)
	busy  = lipgloss.NewStyle().Foreground(lipgloss.Magenta) // the one that is as clear on white as on black
	faint = lipgloss.NewStyle().Faint(true)
	bold  = lipgloss.NewStyle().Bold(true)
)
