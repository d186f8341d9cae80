// Package web is the HTTP client of builder. All requests have one user agent, one rule
// for redirects, and one judgement of the answers that are worth another try.
//
// A redirect never leads away from TLS. To another host, it is followed only by a
// request that reads, and without credentials.
package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"builder/internal/base/retry"
)

// Options configure a client. The zero value is for addresses that get credentials.
type Options struct {
	Plain   bool          // allow HTTP without TLS to other hosts
	Stay    bool          // follow no redirect to another host
	Silence time.Duration // longest time without a byte sent or received; 0 means a minute
}

// ErrElsewhere is the error for a refused redirect to another host.
var ErrElsewhere = errors.New("the server redirects to another host")

// ErrPlain is the error for a refused address without TLS.
var ErrPlain = errors.New("the server leads to an address without TLS")

// Client returns a client.
func Client(o Options) *http.Client {
	return &http.Client{Transport: Transport(o), CheckRedirect: func(req *http.Request, via []*http.Request) error {
		return follow(o, req, via)
	}}
}

// maxRedirects bounds the redirects of one request.
const maxRedirects = 10

// follow decides about the redirect of a request that reads, and removes the credentials
// for another host. net/http keeps them for subdomains, and sends the previous address
// as the Referer, which may hold a token.
func follow(o Options, req *http.Request, via []*http.Request) error {
	first := via[0].URL
	req.Header.Del("Referer")
	switch {
	case len(via) >= maxRedirects:
		return fmt.Errorf("the server redirected %d times", len(via))
	case first.Scheme == "https" && req.URL.Scheme != "https":
		return ErrPlain
	case Same(first, req.URL):
		return nil
	case o.Stay:
		return ErrElsewhere
	}
	for _, name := range []string{"Authorization", "Cookie", "Www-Authenticate"} {
		req.Header.Del(name)
	}
	req.URL.User = nil
	return nil
}

// Same reports whether two addresses have the same scheme, host and port.
func Same(a, b *url.URL) bool { return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host) }

// Loopback reports whether HOST or HOST:PORT is this host. A server here has no
// certificate, and nobody on the network reads what is sent to it.
func Loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Private reports whether a secret may be sent to an address: over TLS, or to this host.
func Private(u *url.URL) bool {
	return u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && Loopback(u.Host))
}

// Transport returns the transport of [Client], for libraries with a client of their own.
// It follows no redirect, and refuses that of a request that writes to another host, so
// that no client sends the content there.
func Transport(o Options) http.RoundTripper {
	if o.Silence == 0 {
		o.Silence = time.Minute
	}
	return &transport{shared, o}
}

// shared reuses connections. It does not decompress, because digests are computed over
// the file as transferred.
var shared = func() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true
	t.MaxIdleConnsPerHost = 8
	return t
}()

// transport marks errors worth another try as temporary: broken and silent connections,
// and the answers of [retry.Status].
type transport struct {
	base http.RoundTripper
	Options
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.Plain && !Private(req.URL) {
		return nil, ErrPlain
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	silent := retry.Temporary(fmt.Errorf("the server sent nothing for %s", t.Silence), 0)
	timer := time.AfterFunc(t.Silence, func() { cancel(silent) })
	moved := func(err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		timer.Reset(t.Silence)
		return retry.Dropped(err)
	}
	end := func() { timer.Stop(); cancel(nil) }
	resp, err := t.base.RoundTrip(prepared(req, ctx, moved))
	if err != nil {
		err = moved(err)
		end()
		return nil, err
	}
	if err := refused(resp); err != nil {
		end()
		return nil, errors.Join(err, resp.Body.Close())
	}
	resp.Body = &watched{resp.Body, moved, end}
	return resp, nil
}

// prepared returns a request with the user agent of builder and a watched body.
func prepared(req *http.Request, ctx context.Context, moved func(error) error) *http.Request {
	req = req.Clone(ctx)
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "builder")
	}
	if req.Body != nil && req.Body != http.NoBody {
		req.Body = &watched{req.Body, moved, func() {}}
	}
	return req
}

// refused returns the error of an answer worth another try, and of a redirect of a
// request that writes to another host.
func refused(resp *http.Response) error {
	if err := retry.Status(resp); retry.IsTemporary(err) {
		return err
	}
	req := resp.Request
	if resp.StatusCode/100 != 3 || req.Method == http.MethodGet || req.Method == http.MethodHead {
		return nil
	}
	if to, err := resp.Location(); err != nil || !Same(to, req.URL) {
		return fmt.Errorf("%w, and gets no request that writes", ErrElsewhere)
	}
	return nil
}

// watched is a body that reports every read.
type watched struct {
	io.ReadCloser
	moved func(error) error
	end   func()
}

// Read implements [io.Reader].
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		_ = w.moved(nil)
		return n, err
	}
	return n, w.moved(err)
}

// Close implements [io.Closer].
func (w *watched) Close() error {
	defer w.end()
	return w.ReadCloser.Close()
}

// WithoutAddress removes the URL from an error of net/http. It may contain a token, and
// the caller adds the name itself.
func WithoutAddress(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
