package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

var errFlaky = errors.New("connection reset")

// failing returns an operation that fails with each of the errors in turn, then
// succeeds.
func failing(errs ...error) (func(context.Context) (string, error), *int) {
	calls := 0
	return func(context.Context) (string, error) {
		calls++
		if calls <= len(errs) {
			return "", errs[calls-1]
		}
		return "done", nil
	}, &calls
}

func TestDo(t *testing.T) {
	flaky := Temporary(errFlaky, 0)
	final := errors.New("404")
	for _, c := range []struct {
		name  string
		errs  []error
		calls int
		want  error
	}{
		{"at once", nil, 1, nil},
		{"after two failures", []error{flaky, flaky}, 3, nil},
		{"wrapped marks count", []error{fmt.Errorf("reading: %w", flaky)}, 2, nil},
		{"no retry without a mark", []error{final}, 1, final},
		{"stops at the first final error", []error{flaky, final, flaky}, 2, final},
		{"bounded", []error{flaky, flaky, flaky, flaky}, 3, errFlaky},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, calls := failing(c.errs...)
				got, err := Do(t.Context(), Policy{Tries: 3, First: time.Second, Most: time.Minute}, f)
				if !errors.Is(err, c.want) || *calls != c.calls || (err == nil) != (got == "done") {
					t.Errorf("got %q, %v after %d calls; want %v after %d", got, err, *calls, c.want, c.calls)
				}
			})
		})
	}
}

func TestServerAsksToWait(t *testing.T) {
	for _, c := range []struct{ asked, waited time.Duration }{
		{40 * time.Second, 40 * time.Second},
		{24 * time.Hour, patience},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, _ := failing(Temporary(errors.New("429"), c.asked))
			start := time.Now()
			must.Get(Do(t.Context(), Default, f))(t)
			check.Same(t, fmt.Sprintf("asked for %s, waited", c.asked), c.waited, time.Since(start))
		})
	}
}

func TestContextComesFirst(t *testing.T) {
	stop := errors.New("stopped by the user")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(5*time.Second, func() { cancel(stop) })
		f, calls := failing(Temporary(errFlaky, time.Minute), nil)
		start := time.Now()
		if _, err := Do(ctx, Default, f); !errors.Is(err, stop) || *calls != 1 || time.Since(start) != 5*time.Second {
			t.Errorf("in a wait: %v after %d calls and %s", err, *calls, time.Since(start))
		}
		if _, err := Do(ctx, Default, f); !errors.Is(err, stop) || *calls != 1 {
			t.Errorf("before the first call: %v after %d calls", err, *calls)
		}
	})
}

func TestTemporary(t *testing.T) {
	check.That(t, Temporary(nil, time.Second) == nil, "Temporary(nil) is an error")
	err := fmt.Errorf("fetching: %w", Temporary(errFlaky, 0))
	check.That(t, IsTemporary(err) && errors.Is(err, errFlaky) && !IsTemporary(errFlaky), "the mark is lost or invented")
	check.That(t, err.Error() == "fetching: connection reset", "the mark shows: %q", err)
}

func TestDropped(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{io.ErrUnexpectedEOF, true},
		{fmt.Errorf("reading: %w", io.EOF), true},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, true},
		{&net.OpError{Op: "write", Err: syscall.EPIPE}, true},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, true},
		{refused, false},
		{&net.DNSError{IsNotFound: true}, false},
		{errors.New("404"), false},
	} {
		got := Dropped(c.err)
		check.That(t, IsTemporary(got) == c.want && errors.Is(got, c.err), "%v: %v", c.err, got)
	}
	check.That(t, Dropped(nil) == nil, "nothing was dropped")
}
