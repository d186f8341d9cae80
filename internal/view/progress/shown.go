package progress

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"builder/internal/base/diag"
)

// Auto selects the format by the type of the output.
const Auto Format = "auto"

// Shown is the progress display of a command.
type Shown struct {
	*Display
	Format        Format
	stopListening func() // stops waiting for an interrupt, after answering one that arrived
}

// stopping is printed as soon as an interrupt arrives, because running steps take a
// moment to end.
const stopping = "stopping the running steps (interrupt again to stop at once)"

// Begin shows the progress of a command on w in the requested format. With Auto, w
// decides.
func Begin(ctx context.Context, w io.Writer, asked Format, verbose bool) (*Shown, error) {
	options := Detect(w, os.Getenv)
	switch {
	case asked == Auto:
	case asked == Live && options.Format != Live:
		if options = Detect(w, withoutActions); options.Format != Live {
			return nil, diag.Errorf(diag.Usage, "--progress live: stderr is not a terminal that can move its cursor").WithHint("use --progress plain, which writes a log")
		}
	default:
		options.Format = asked
	}
	options.Verbose = verbose
	p := New(w, options)
	return &Shown{p, options.Format, answer(ctx, p)}, nil
}

// answer prints stopping as soon as ctx is cancelled, until stopListening is called.
func answer(ctx context.Context, p *Display) (stopListening func()) {
	said := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(said)
		p.Note(stopping)
	})
	return sync.OnceFunc(func() {
		switch {
		case !stop():
			<-said
		case ctx.Err() != nil: // the context closes Done before it calls its functions
			p.Note(stopping)
		}
	})
}

// withoutActions is [os.Getenv] without GITHUB_ACTIONS, for a terminal inside a job of
// GitHub Actions.
func withoutActions(name string) string {
	if name == "GITHUB_ACTIONS" {
		return ""
	}
	return os.Getenv(name)
}

// Close ends the display. It may be called twice.
func (d *Shown) Close() {
	d.stopListening()
	d.Display.Close()
}

// End closes the display and reports err. In the format JSON the error is only an
// event, and nothing else prints it.
func (d *Shown) End(err error) error {
	d.Close()
	if err == nil {
		return nil
	}
	d.Faults(err)
	if d.Format == JSON {
		return &printed{err}
	}
	return err
}

// printed is an error already reported as an event.
type printed struct{ error }

// Unwrap returns the reported error.
func (t *printed) Unwrap() error { return t.error }

// Unprinted returns err, or nil if the display already printed it.
func Unprinted(err error) error {
	if _, ok := errors.AsType[*printed](err); ok {
		return nil
	}
	return err
}
