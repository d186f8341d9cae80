package progress

import (
	"io"

	"builder/internal/view/term"
)

// Format is the display format of progress.
type Format string

// The display formats.
const (
	Live   Format = "live"   // moving lines on a terminal
	Plain  Format = "plain"  // a log with timestamps
	GitHub Format = "github" // a log for GitHub Actions, with groups and annotations
	JSON   Format = "json"   // one [Event] per line
)

// Formats lists the display formats.
func Formats() []Format { return []Format{Live, Plain, GitHub, JSON} }

// Options configure a display. The zero value is a plain log.
type Options struct {
	Format Format
	// Colour allows colour. Only the format Live uses it.
	Colour bool
	// Size returns the columns and lines of the terminal; nil means 80 by 24. It is
	// called before every frame, to follow changes of the size.
	Size func() (width, height int)
	// Verbose also shows the log lines of steps.
	Verbose bool
}

// Detect returns the options for w. It reads GITHUB_ACTIONS, NO_COLOR and TERM with
// getenv, usually [os.Getenv]. A dumb terminal gets the plain log, which a screen
// reader can follow.
func Detect(w io.Writer, getenv func(string) string) Options {
	if getenv("GITHUB_ACTIONS") == "true" {
		return Options{Format: GitHub}
	}
	if name := getenv("TERM"); name == "" || name == "dumb" || !term.Is(w) {
		return Options{Format: Plain}
	}
	return Options{
		Format: Live,
		Colour: getenv("NO_COLOR") == "",
		Size:   func() (int, int) { return term.Size(w) },
	}
}

func newView(w io.Writer, options Options) view {
	switch options.Format {
	case Live:
		if options.Size == nil {
			options.Size = func() (int, int) { return 80, 24 }
		}
		return &live{w: term.Raw(w), size: options.Size, colour: options.Colour}
	case GitHub:
		return &github{plain: plain{w: term.Raw(w), undated: true}, logs: map[string]*tail{}}
	case JSON:
		return &stream{term.Raw(w)}
	}
	return &plain{w: w}
}
