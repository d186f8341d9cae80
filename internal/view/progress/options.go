package progress

import (
	"io"

	"builder/internal/view/term"
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
