package web

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"builder/test/kit/must"
)

func TestClient(t *testing.T) {
	var seen []http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header)
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/next", http.StatusFound)
		}
	}))
	defer server.Close()
	for _, c := range []struct {
		follow Follow
		asked  int
		code   int
	}{{Stay, 1, http.StatusFound}, {nil, 2, http.StatusOK}} {
		seen = nil
		resp, err := Client(c.follow).Get(server.URL)
		must.Succeed(t, err)
		resp.Body.Close()
		if resp.StatusCode != c.code || len(seen) != c.asked {
			t.Errorf("%d after %d requests, want %d after %d", resp.StatusCode, len(seen), c.code, c.asked)
		}
		for _, h := range seen {
			if h.Get("User-Agent") != "builder" || h.Get("Accept-Encoding") != "" {
				t.Errorf("the server sees %v", h)
			}
		}
	}
}

// A URL may contain a token, which must not appear in the error of a refused redirect.
func TestWithoutAddress(t *testing.T) {
	refused := errors.New("not there")
	server := httptest.NewServer(http.RedirectHandler("/?token=hush", http.StatusFound))
	defer server.Close()
	_, err := Client(func(*http.Request, []*http.Request) error { return refused }).Get(server.URL + "/?token=hush")
	if plain := WithoutAddress(err); plain != refused || !strings.Contains(err.Error(), "hush") {
		t.Errorf("%v of %v", plain, err)
	}
	if WithoutAddress(refused) != refused || WithoutAddress(nil) != nil {
		t.Error("another error does not stay as it is")
	}
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:5000": true, "127.0.0.1": true, "127.0.0.1:80": true, "[::1]:80": true, "::1": true,
		"registry.example": false, "localhost.example:5000": false, "10.0.0.1:5000": false, "": false,
	} {
		if got := Loopback(host); got != want {
			t.Errorf("%s: %v", host, got)
		}
	}
}
