// Package web makes the client of HTTP that every package of builder uses: one
// transport, one name, and the redirects that its user allows.
package web

import (
	"errors"
	"net/http"
	"net/url"
	"time"
)

// A Follow decides whether to follow a redirect, as [http.Client.CheckRedirect] does.
type Follow func(req *http.Request, via []*http.Request) error

// Client returns a client that asks follow about each redirect.
func Client(follow Follow) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: follow}
}

// Stay follows no redirect: its answer is the answer.
func Stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// transport is shared, so that connections are used again. It decompresses nothing: a
// digest is of the file, not of its meaning.
var transport = named{func() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true
	t.MaxIdleConnsPerHost = 8
	t.ExpectContinueTimeout = 2 * time.Second // servers that do not know the question say nothing
	return t
}()}

// named says to a server who asks.
type named struct{ *http.Transport }

// RoundTrip implements [http.RoundTripper].
func (n named) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("User-Agent") == "" {
		req = req.Clone(req.Context())
		req.Header.Set("User-Agent", "builder")
	}
	return n.Transport.RoundTrip(req)
}

// WithoutAddress drops the address that net/http puts before an error: it may hold a
// token, and the caller names it.
func WithoutAddress(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
