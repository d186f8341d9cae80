package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"builder/internal/base/retry"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// recorder is a server that keeps the requests.
type recorder struct {
	*httptest.Server
	seen []*http.Request
}

func record(t *testing.T, answer http.HandlerFunc) *recorder {
	t.Helper()
	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.seen = append(r.seen, req)
		answer(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func TestHeaders(t *testing.T) {
	server := record(t, func(http.ResponseWriter, *http.Request) {})
	resp := must.Get(Client(Options{}).Get(server.URL))(t)
	resp.Body.Close()
	h := server.seen[0].Header
	check.That(t, h.Get("User-Agent") == "builder" && h.Get("Accept-Encoding") == "", "the server sees %v", h)
}

// To another host, a request that reads goes without credentials, and one that writes
// does not go at all. Another port is another host, as is a subdomain.
func TestRedirects(t *testing.T) {
	other := record(t, func(http.ResponseWriter, *http.Request) {})
	for _, c := range []struct {
		method, to string
		o          Options
		want       error
		here       bool // whether the target is the same host
	}{
		{"GET", "/next", Options{Stay: true}, nil, true},
		{"POST", "/next", Options{}, nil, true},
		{"GET", other.URL, Options{}, nil, false},
		{"HEAD", other.URL, Options{}, nil, false},
		{"GET", other.URL, Options{Stay: true}, ErrElsewhere, false},
		{"POST", other.URL, Options{}, ErrElsewhere, false},
		{"PUT", other.URL, Options{}, ErrElsewhere, false},
		{"DELETE", other.URL, Options{}, ErrElsewhere, false},
	} {
		for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
			other.seen = nil
			first := record(t, func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Path == "/" {
					http.Redirect(w, req, c.to, status)
				}
			})
			req := must.Get(http.NewRequestWithContext(t.Context(), c.method, first.URL+"/?token=hush", strings.NewReader("hush")))(t)
			req.Header.Set("Authorization", "hush")
			req.Header.Set("Cookie", "hush")
			resp, err := Client(c.o).Do(req)
			if err == nil {
				resp.Body.Close()
			}
			if !errors.Is(err, c.want) || len(other.seen) > 0 == (c.here || c.want != nil) || c.here && len(first.seen) != 2 {
				t.Errorf("%+v, %d: %v, asked %d and %d times", c, status, err, len(first.seen), len(other.seen))
			}
			for _, seen := range other.seen {
				text := fmt.Sprint(seen.Header, seen.URL)
				check.That(t, !strings.Contains(text, "hush"), "%+v, %d: the other host sees %s", c, status, text)
			}
		}
	}
}

func TestRedirectsAwayFromTLS(t *testing.T) {
	plain := record(t, func(http.ResponseWriter, *http.Request) {})
	server := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	t.Cleanup(server.Close)
	c := Client(Options{Plain: true})
	c.Transport.(*transport).base = server.Client().Transport
	_, err := c.Get(server.URL)
	check.That(t, errors.Is(err, ErrPlain) && len(plain.seen) == 0, "%v after %d requests", err, len(plain.seen))
}

func TestPlainAddresses(t *testing.T) {
	for address, want := range map[string]error{"http://b.example/token": ErrPlain, "ftp://b.example/x": ErrPlain, "http://127.0.0.1:1/x": syscall.ECONNREFUSED} {
		_, err := Client(Options{}).Get(address)
		check.That(t, errors.Is(err, want), "%s: %v", address, err)
	}
}

func TestAnswersWorthAnotherTry(t *testing.T) {
	var status int
	server := record(t, func(w http.ResponseWriter, _ *http.Request) {
		switch status {
		case 0: // silence
			_, _ = w.Write([]byte("begun"))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(300 * time.Millisecond)
		case 1: // a broken connection
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("begun"))
		default:
			w.WriteHeader(status)
		}
	})
	for code, want := range map[int]bool{0: true, 1: true, 200: false, 403: false, 404: false, 408: true, 429: true, 500: true, 501: false, 503: true} {
		status = code
		resp, err := Client(Options{Silence: 100 * time.Millisecond}).Get(server.URL)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		check.That(t, retry.IsTemporary(err) == want && (err != nil) == want, "%d: %v", code, err)
	}
}

// A URL may contain a token, which must not appear in the error of a refused redirect.
func TestWithoutAddress(t *testing.T) {
	server := httptest.NewServer(http.RedirectHandler("http://localhost:1/?token=hush", http.StatusFound))
	defer server.Close()
	_, err := Client(Options{Stay: true}).Get(server.URL + "/?token=hush")
	plain := WithoutAddress(err)
	check.That(t, plain == ErrElsewhere && strings.Contains(err.Error(), "hush"), "%v of %v", plain, err)
	check.That(t, WithoutAddress(ErrPlain) == ErrPlain && WithoutAddress(nil) == nil, "another error does not stay as it is")
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:5000": true, "127.0.0.1": true, "127.0.0.1:80": true, "[::1]:80": true, "::1": true,
		"registry.example": false, "localhost.example:5000": false, "10.0.0.1:5000": false, "": false,
	} {
		check.Same(t, host, want, Loopback(host))
	}
}
