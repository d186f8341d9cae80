// Package web creates the HTTP clients of builder. They share one transport and one
// user agent. Each decides about its redirects.
package web

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// A Follow decides whether to follow a redirect, as [http.Client.CheckRedirect] does.
type Follow func(req *http.Request, via []*http.Request) error

// Client returns a client that calls follow for each redirect.
func Client(follow Follow) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: follow}
}

// Stay follows no redirect. The client returns the redirect as its response.
func Stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

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

// Firm returns a transport that fails on a redirect. It is for a client that would follow
// it and send a secret along.
func Firm() http.RoundTripper { return firm{} }

type firm struct{}

// RoundTrip implements [http.RoundTripper].
func (firm) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := transport.RoundTrip(req)
	if err == nil && resp.StatusCode/100 == 3 {
		resp.Body.Close()
		return nil, fmt.Errorf("the server answers with a redirect (%s), which is not followed", resp.Status)
	}
	return resp, err
}

// transport is shared to reuse connections. It does not decompress, because digests are
// computed over the file as transferred.
var transport = named{func() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true
	t.MaxIdleConnsPerHost = 8
	return t
}()}

// named sets the user agent of requests without one.
type named struct{ *http.Transport }

// RoundTrip implements [http.RoundTripper].
func (n named) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("User-Agent") == "" {
		req = req.Clone(req.Context())
		req.Header.Set("User-Agent", "builder")
	}
	return n.Transport.RoundTrip(req)
}

// WithoutAddress removes the URL from an error of net/http. It may contain a token, and
// the caller adds the name itself.
func WithoutAddress(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
