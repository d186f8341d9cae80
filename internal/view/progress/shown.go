package progress

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"builder/internal/base/diag"
)

// Auto lets what the progress is written to decide how it is shown.
const Auto Format = "auto"

// Shown is the progress of a command until it ends.
type Shown struct {
	*Display
	Format Format
	unhear func() // the interrupt; what was heard has been answered then
}

// stopping is said at once when somebody wants a command to end: what runs is told
// to, and takes a moment.
const stopping = "stopping: what runs is told to end (once more stops now)"

// Begin shows the progress of a command on w, as a person asked for it. Format is auto
// where w decides.
func Begin(ctx context.Context, w io.Writer, asked Format, verbose bool) (*Shown, error) {
	options := Detect(w, os.Getenv)
	switch {
	case asked == Auto:
	case asked == Live && options.Format != Live:
		if options = Detect(w, withoutActions); options.Format != Live {
			return nil, diag.Errorf(diag.Usage, "--progress live: stderr is no terminal that can move its cursor").WithHint("--progress plain is a log")
		}
	default:
		options.Format = asked
	}
	options.Verbose = verbose
	p := New(w, options)
	return &Shown{p, options.Format, answer(ctx, p)}, nil
}

// answer says at once that an interrupt was heard, until unhear is called.
func answer(ctx context.Context, p *Display) (unhear func()) {
	said := make(chan struct{})
	unheard := context.AfterFunc(ctx, func() {
		defer close(said)
		p.Note(stopping)
	})
	return sync.OnceFunc(func() {
		switch {
		case !unheard():
			<-said
		case ctx.Err() != nil: // the context closes Done before it calls its functions
			p.Note(stopping)
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
func (d *Shown) Close() {
	d.unhear()
	d.Display.Close()
}

// End closes the display and reports what was wrong to whoever reads it there. To a
// program that reads events a fault is one, and is said nowhere else.
func (d *Shown) End(err error) error {
	d.Close()
	if err == nil {
		return nil
	}
	d.Faults(err)
	if d.Format == JSON {
		return &told{err}
	}
	return err
}

// told is an error that its reader knows already.
type told struct{ error }

// Unwrap returns what was told.
func (t *told) Unwrap() error { return t.error }

// Untold is err, or nil where it was told.
func Untold(err error) error {
	if _, ok := errors.AsType[*told](err); ok {
		return nil
	}
	return err
}
