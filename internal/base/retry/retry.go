// Package retry repeats network operations. It repeats only errors that the caller has
// marked with [Temporary]. A wrong digest, a missing file or a compiler error is never
// temporary.
package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Policy bounds the number of tries and the waits between them.
type Policy struct {
	Tries int           // number of tries, including the first
	First time.Duration // wait after the first failure; it grows by half each time
	Most  time.Duration // the longest wait, unless the server requests a longer one
}

// Default is for files and registries. Its waits are about 13 seconds in all.
var Default = Policy{Tries: 6, First: time.Second, Most: 15 * time.Second}

// patience bounds the wait requested by a server.
const patience = 2 * time.Minute

type temporary struct {
	err   error
	after time.Duration
}

func (t *temporary) Error() string { return t.err.Error() }
func (t *temporary) Unwrap() error { return t.err }

// As gives backoff the delay the server requested.
func (t *temporary) As(target any) bool {
	wait, ok := target.(**backoff.RetryAfterError)
	if !ok || t.after <= 0 {
		return false
	}
	*wait = &backoff.RetryAfterError{Duration: min(t.after, patience)}
	return true
}

// Temporary marks err as worth another try. after is the delay requested by the server,
// or 0 for the policy's delay.
func Temporary(err error, after time.Duration) error {
	if err == nil {
		return nil
	}
	return &temporary{err, after}
}

// Status returns the error for a refusal of a server. The statuses 408, 429 and 5xx except
// 501 are temporary.
func Status(resp *http.Response) error {
	err := fmt.Errorf("the server answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	switch code := resp.StatusCode; {
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500 && code != http.StatusNotImplemented:
		seconds, _ := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 31) // a date counts as none
		return Temporary(err, time.Duration(seconds)*time.Second)
	}
	return err
}

// Dropped marks errors of a broken or slow connection as temporary. A refused
// connection and an unknown host name are permanent and returned unchanged.
func Dropped(err error) error {
	for _, broken := range []error{io.ErrUnexpectedEOF, io.EOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed} {
		if errors.Is(err, broken) {
			return Temporary(err, 0)
		}
	}
	if network, ok := errors.AsType[net.Error](err); ok && network.Timeout() {
		return Temporary(err, 0)
	}
	return err
}

// IsTemporary reports whether err is marked as temporary.
func IsTemporary(err error) bool {
	_, ok := errors.AsType[*temporary](err)
	return ok
}

// Do calls f until it succeeds, fails permanently, or has used all tries, and returns
// the last error of f. If ctx ends, even during a wait, Do returns the cause of ctx.
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
