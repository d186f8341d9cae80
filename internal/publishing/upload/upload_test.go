package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestUploadTwiceIsOnce(t *testing.T) {
	f := newFake(t)
	s, w := open(t, Prefix+f.URL, f.send), wheelWith(t, "a = 1\n")
	for _, want := range []bool{false, true} {
		existed, err := s.Upload(t.Context(), w)
		must.Hold(t, existed == want && err == nil, "%v, %v", existed, err)
	}
	check.That(t, f.sent == 1 && f.files[demo] == w.SHA256, "sent %d times, %v", f.sent, f.files)
}

// Another digest is refused before anything is sent.
func TestOtherBytesAreAConflict(t *testing.T) {
	f := newFake(t)
	first, second := wheelWith(t, "a = 1\n"), wheelWith(t, "a = 2\n")
	f.files[demo] = first.SHA256
	_, err := open(t, f.URL, f.send).Upload(t.Context(), second)
	check.Fails(t, err, fmt.Sprintf("the server has another file named %q: sha256 %s, ours has %s", demo, first.SHA256, second.SHA256))
	check.That(t, diag.CodeOf(err) == diag.Publish && f.sent == 0, "%v, sent %d times", err, f.sent)
}

// What the program says about the upload does not count. The index decides.
func TestTheIndexDecides(t *testing.T) {
	other := strings.Repeat("ab", 32)
	lost := errors.New("the connection broke")
	for name, c := range map[string]struct {
		record func(sum string) string
		answer error
		says   string // "" for success
	}{
		"the answer is lost":            {func(sum string) string { return sum }, lost, ""},
		"the server refuses":            {func(string) string { return "" }, lost, "the connection broke"},
		"another digest":                {func(string) string { return other }, nil, "took the file, but its index shows another: "},
		"another digest, lost":          {func(string) string { return other }, lost, "has another file named"},
		"the server loses the file":     {func(string) string { return "" }, nil, "took the file, but its index does not show it"},
		"the server keeps no digest":    {func(string) string { return " " }, nil, "sha256 unknown"},
		"the server keeps other digits": {strings.ToUpper, nil, ""},
	} {
		f := newFake(t)
		f.record, f.answer = c.record, c.answer
		_, err := open(t, f.URL, f.send).Upload(t.Context(), wheelWith(t, "a = 1\n"))
		if c.says == "" && err != nil || c.says != "" && (diag.CodeOf(err) != diag.Publish || !strings.Contains(err.Error(), c.says)) || f.sent != 1 {
			t.Errorf("%s: %v, sent %d times", name, err, f.sent)
		}
	}
}

func TestAnIndexThatLags(t *testing.T) {
	f := newFake(t)
	f.look = func(n int, w http.ResponseWriter, r *http.Request) bool {
		if n < 4 {
			http.NotFound(w, r)
		}
		return n < 4
	}
	_, err := open(t, f.URL+"?simple=simple/", f.send).Upload(t.Context(), wheelWith(t, "a = 1\n"))
	check.That(t, err == nil && f.looks == 4, "%v after %d requests", err, f.looks)
}

// Bytes that nobody verified reach no server: a wheel that changed is not sent, and the
// program gets a copy, so that a later change has no effect.
func TestAFileThatChanges(t *testing.T) {
	for _, later := range []bool{false, true} {
		f := newFake(t)
		w, other := wheelWith(t, "a = 1\n"), wheelWith(t, "a = 2\n")
		change := sync.OnceFunc(func() {
			err := os.Rename(other.Path, w.Path)
			check.That(t, err == nil, "%v", err)
		})
		if !later {
			change()
		}
		_, err := open(t, f.URL, func(ctx context.Context, address, path string) error {
			change()
			return f.send(ctx, address, path)
		}).Upload(t.Context(), w)
		if later && (err != nil || f.files[demo] != w.SHA256) || !later && (err == nil || !strings.Contains(err.Error(), demo+" has changed") || f.sent != 0) {
			t.Errorf("later %v: %v, %v", later, err, f.files)
		}
	}
}

func TestItCanBeInterrupted(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	send := func(context.Context, string, string) error { cancel(); return errors.New("killed") }
	_, err := open(t, f.URL, send).Upload(ctx, wheelWith(t, "a = 1\n"))
	check.That(t, diag.CodeOf(err) == diag.Interrupted, "%v", err)
}

// Credentials go only to the server that gets the upload.
func TestRedirectsCarryNoCredentials(t *testing.T) {
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	f := newFake(t)
	f.look = func(n int, w http.ResponseWriter, r *http.Request) bool {
		if n == 1 {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}
		return n == 1
	}
	// An index that redirects an unknown project to another server lacks the project.
	existed, err := open(t, f.URL+"?simple=/simple/", f.send).Upload(t.Context(), wheelWith(t, "a = 1\n"))
	check.That(t, !existed && err == nil && len(seen) == 0, "%v, %v, the other server was asked %d times", existed, err, len(seen))
	_, _ = open(t, f.URL+"?simple="+other.URL, f.send).Upload(t.Context(), wheelWith(t, "a = 1\n"))
	check.That(t, len(seen) != 0 && strings.Join(seen, "") == "", "an index of another origin sees %q", seen)
	check.That(t, len(f.auth) != 0 && f.auth[0] == "Basic YW5uOmdlaGVpbS00NzEx", "the server itself sees %q", f.auth)
}

// A cut page, a busy index and a page that asks to log in prove nothing about the file.
func TestAnIndexThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		passes bool // another request may help
		hint   string
	}{
		"cut": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "<a href=x>")
		}, true, "sends nothing that the index shows"},
		"503":     {func(w http.ResponseWriter) { w.WriteHeader(503) }, true, "sends nothing that the index shows"},
		"401":     {func(w http.ResponseWriter) { w.WriteHeader(401) }, false, "set UV_PUBLISH_TOKEN"},
		"403":     {func(w http.ResponseWriter) { w.WriteHeader(403) }, false, "set UV_PUBLISH_TOKEN"},
		"418":     {func(w http.ResponseWriter) { w.WriteHeader(418) }, false, "?simple=URL"},
		"no page": {func(w http.ResponseWriter) { w.Header().Set("Content-Type", "application/json") }, false, "in HTML"},
		"endless": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			for err := error(nil); err == nil; {
				_, err = io.WriteString(w, strings.Repeat("<p>x</p>", 1<<13))
			}
		}, false, ""},
	} {
		for _, times := range []int{2, 100} {
			f := newFake(t)
			w := wheelWith(t, "a = 1\n")
			f.files[demo] = w.SHA256
			f.look = func(n int, w http.ResponseWriter, _ *http.Request) bool {
				if n <= times {
					c.answer(w)
				}
				return n <= times
			}
			existed, err := open(t, f.URL, f.send).Upload(t.Context(), w)
			if c.passes && times == 2 {
				check.That(t, existed && err == nil, "%s, %d times: %v, %v", name, times, existed, err)
			} else if diag.CodeOf(err) != diag.Publish || !strings.Contains(diag.All(err)[0].Hint, c.hint) {
				t.Errorf("%s, %d times: %v, %q", name, times, err, diag.All(err)[0].Hint)
			}
			check.That(t, f.sent == 0, "%s, %d times: sent %d times", name, times, f.sent)
		}
	}
}

func TestServersThatAreNotReached(t *testing.T) {
	f, stopped := newFake(t), newFake(t)
	stopped.Close()
	server := httptest.NewTLSServer(f)
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	for address, says := range map[string]string{stopped.URL: "connection refused", server.URL: "failed to verify certificate"} {
		_, err := open(t, address, f.send).Upload(t.Context(), wheelWith(t, "a = 1\n"))
		check.That(t, diag.CodeOf(err) == diag.Publish && strings.Contains(err.Error(), says) && strings.Contains(diag.All(err)[0].Hint, "SSL_CERT_FILE") && f.sent == 0,
			"%v", err)
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"pypi:https://h/up/":                                 "https://h/up/ https://h/up/simple/demo/ https://h/up/+simple/demo/",
		"pypi:https://h/ann/dev/?simple=+simple/":            "https://h/ann/dev/ https://h/ann/dev/+simple/demo/",
		"pypi:https://up.h/legacy/?simple=https://h/i/":      "https://up.h/legacy/ https://h/i/demo/",
		"pypi:http://127.0.0.1:8080/":                        "http://127.0.0.1:8080/ http://127.0.0.1:8080/simple/demo/ http://127.0.0.1:8080/+simple/demo/",
		"pypi:http://localhost/?simple=/a%20b":               "http://localhost/ http://localhost/a%20b/demo/",
		"pypi:":                                              "malformed",
		"pypi:h/up":                                          "malformed",
		"pypi:ftp://h/":                                      "malformed",
		"pypi:https://h/?simple=%zz":                         "malformed",
		"pypi:https://h/?simple=":                            "malformed",
		"pypi:https://ann:" + secret + "@h/":                 "holds credentials",
		"pypi:https://ann:" + secret + "@h:x/":               "malformed",
		"pypi:https://h/?simple=https://a:" + secret + "@h/": "holds credentials",
		"pypi:https://h/?token=" + secret:                    "unsupported query",
		"pypi:https://h/?simple=a&b=" + secret:               "unsupported query",
		"pypi:https://h/#" + secret:                          "unsupported query",
		"pypi:http://h/":                                     "not encrypted",
		"pypi:https://h/?simple=http://h/":                   "not encrypted",
		"pypi:https://h/?simple=i%3Ftoken=" + secret:         "has a query",
	} {
		s, err := Open(text, false, nil)
		if err != nil {
			check.That(t, strings.Contains(err.Error(), want) && !strings.Contains(err.Error()+diag.All(err)[0].Hint, secret) && diag.CodeOf(err) == diag.Usage,
				"%s: %v", text, err)
			continue
		}
		got := s.URL
		for _, root := range s.roots {
			got += " " + root.JoinPath("demo/").String()
		}
		check.That(t, got == want, "%s: %s, want %s", text, got, want)
	}
	_, err := Open("pypi:http://h/", true, nil)
	check.That(t, err == nil, "%v", err)
}
