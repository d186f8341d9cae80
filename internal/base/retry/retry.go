// Package retry tries an operation at the edge of the network again: only there,
// and only where whoever failed has said with [Temporary] that trying again may
// help. A wrong digest, a missing file or a compiler's error never is.
package retry

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Policy bounds how often and how slowly something is tried.
type Policy struct {
	Tries int           // of the operation, the first included
	First time.Duration // wait after the first failure; it grows by half each time
	Most  time.Duration // the longest wait of ours
}

// Default is for a file or a registry: half a minute of waiting in all.
var Default = Policy{Tries: 6, First: time.Second, Most: 15 * time.Second}

// patience bounds the wait that a server may ask for.
const patience = 2 * time.Minute

type temporary struct {
	err   error
	after time.Duration
}

func (t *temporary) Error() string { return t.err.Error() }
func (t *temporary) Unwrap() error { return t.err }

// As tells backoff of a wait that the server asked for.
func (t *temporary) As(target any) bool {
	wait, ok := target.(**backoff.RetryAfterError)
	if !ok || t.after <= 0 {
		return false
	}
	*wait = &backoff.RetryAfterError{Duration: min(t.after, patience)}
	return true
}

// Temporary marks err as worth another try, not before the time that a server
// asked for; 0 leaves the wait to the policy.
func Temporary(err error, after time.Duration) error {
	if err == nil {
		return nil
	}
	return &temporary{err, after}
}

// After returns how long a Retry-After header asks to wait from now on, which it
// says in seconds or as a date; 0 is for neither.
func After(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(header); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}

// Dropped marks the errors of a connection that broke or took too long: another
// may do better. One that was refused, and a name that does not exist, stay as they
// are.
func Dropped(err error) error {
	for _, broken := range []error{io.ErrUnexpectedEOF, io.EOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, broken) {
			return Temporary(err, 0)
		}
	}
	if network, ok := errors.AsType[net.Error](err); ok && network.Timeout() {
		return Temporary(err, 0)
	}
	return err
}

// IsTemporary reports whether err is marked.
func IsTemporary(err error) bool {
	_, ok := errors.AsType[*temporary](err)
	return ok
}

// Do calls f until it succeeds, fails for good, or has been tried often enough,
// and returns its last error. When ctx ends, its cause is returned, also in the
// midst of a wait.
func Do[T any](ctx context.Context, p Policy, f func(context.Context) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	waits := backoff.NewExponentialBackOff()
	waits.InitialInterval, waits.MaxInterval = p.First, p.Most
	return backoff.Retry(ctx, func() (T, error) {
		v, err := f(ctx)
		switch {
		case err == nil:
			return v, nil
		case ctx.Err() != nil:
			return none, backoff.Permanent(context.Cause(ctx))
		case !IsTemporary(err):
			return none, backoff.Permanent(err)
		}
		return none, err
	}, backoff.WithBackOff(waits), backoff.WithMaxTries(uint(max(p.Tries, 1))), backoff.WithMaxElapsedTime(0))
}
