package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/view/progress"
)

// autoProgress lets what stderr is decide how progress is shown.
const autoProgress = "auto"

func progressFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "progress", EnvVars: []string{"BUILDER_PROGRESS"}, Value: autoProgress,
		Usage: "show progress as `FORMAT`: " + strings.Join(progressFormats(), ", "),
	}
}

func verboseFlag() cli.Flag {
	return &cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "show what the steps write into their logs too"}
}

// progressFormats are the words that --progress takes.
func progressFormats() []string {
	words := []string{autoProgress}
	for _, f := range progress.Formats() {
		words = append(words, string(f))
	}
	return words
}

// displayOptions is what the flags say about progress.
type displayOptions struct {
	format  string
	verbose bool
}

func readDisplay(c *cli.Context) (displayOptions, error) {
	o := displayOptions{format: cmp.Or(c.String("progress"), autoProgress), verbose: c.Bool("verbose")}
	if !slices.Contains(progressFormats(), o.format) {
		return o, diag.Errorf(diag.Usage, "--progress: %q is not known", o.format).WithHint("%s", diag.DidYouMean(o.format, progressFormats()))
	}
	return o, nil
}

// display is the progress of a command on stderr.
type display struct {
	*progress.Display
	format progress.Format
	unhear func() // the interrupt; what was heard has been answered then
}

// stopping is said at once when somebody wants a command to end: what runs is told
// to, and takes a moment.
const stopping = "stopping: what runs is told to end (once more stops now)"

// begin shows the progress of a command until it ends.
func (o displayOptions) begin(ctx context.Context, out printer) (*display, error) {
	options := progress.Detect(out.stderr, os.Getenv)
	switch format := progress.Format(o.format); {
	case o.format == autoProgress:
	case format == progress.Live && options.Format != progress.Live:
		if options = progress.Detect(out.stderr, withoutActions); options.Format != progress.Live {
			return nil, diag.Errorf(diag.Usage, "--progress live: stderr is no terminal that can move its cursor").WithHint("--progress plain is a log")
		}
	default:
		options.Format = format
	}
	options.Verbose = o.verbose
	p := progress.New(out.stderr, options)
	return &display{p, options.Format, answer(ctx, p)}, nil
}

// answer says at once that an interrupt was heard, until unhear is called.
func answer(ctx context.Context, p *progress.Display) (unhear func()) {
	said := make(chan struct{})
	unheard := context.AfterFunc(ctx, func() {
		defer close(said)
		p.Note(stopping)
	})
	return sync.OnceFunc(func() {
		if !unheard() {
			<-said
		}
	})
}

// withoutActions is the environment of a terminal that somebody opened in a job of
// GitHub Actions.
func withoutActions(name string) string {
	if name == "GITHUB_ACTIONS" {
		return ""
	}
	return os.Getenv(name)
}

// Close ends the display; it may be called twice.
func (d *display) Close() {
	d.unhear()
	d.Display.Close()
}

// end closes the display and reports what was wrong to whoever reads it there. To a
// program that reads events a fault is one, and is said nowhere else.
func (d *display) end(err error) error {
	d.Close()
	if err == nil {
		return nil
	}
	d.Faults(err)
	if d.format == progress.JSON {
		return &told{err}
	}
	return err
}

// told is an error that its reader knows already.
type told struct{ error }

// Unwrap returns what was told.
func (t *told) Unwrap() error { return t.error }

// untold is err, or nil where it was told.
func untold(err error) error {
	if _, ok := errors.AsType[*told](err); ok {
		return nil
	}
	return err
}
