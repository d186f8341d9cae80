package progress

import (
	"io"
	"os"

	"builder/internal/base/diag"
	"builder/internal/view/term"
)

// Format is the display format of progress.
type Format string

// The display formats.
const (
	Auto   Format = "auto"   // chosen by the output
	Live   Format = "live"   // moving lines on a terminal
	Plain  Format = "plain"  // a log with timestamps
	GitHub Format = "github" // a log for GitHub Actions, with groups and annotations
)

// Formats lists the display formats.
func Formats() []Format { return []Format{Auto, Live, Plain, GitHub} }

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

// Detect returns the options for w in a format. GITHUB_ACTIONS, NO_COLOR and TERM of the
// environment decide too. A dumb terminal gets the plain log, which a screen reader can
// follow.
func Detect(w io.Writer, asked Format) (Options, error) {
	name := os.Getenv("TERM")
	moves := name != "" && name != "dumb" && term.Is(w)
	switch {
	case asked == Live && !moves:
		return Options{}, diag.Errorf(diag.Usage, "--progress live: stderr is not a terminal that can move its cursor").WithHint("use --progress plain, which writes a log")
	case asked != Auto:
	case os.Getenv("GITHUB_ACTIONS") == "true":
		asked = GitHub
	case moves:
		asked = Live
	default:
		asked = Plain
	}
	return Options{Format: asked, Colour: os.Getenv("NO_COLOR") == "", Size: func() (int, int) { return term.Size(w) }}, nil
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
	}
	return &plain{w: w}
}
