package upload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"builder/internal/base/retry"
	"builder/internal/files/artifact"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

// fake is the index of an upload server, and takes the place of the program that sends.
type fake struct {
	*httptest.Server
	// look may answer the n-th request to the index, counted from 1, in place of the
	// server. It returns whether it did.
	look func(n int, w http.ResponseWriter, r *http.Request) bool
	// answer is what the program says after it sent a file.
	answer error
	// record returns the digest that the server records for a sent file, or "" to lose it.
	record func(sum string) string

	mu    sync.Mutex
	sent  int
	looks int
	files map[string]string // sha256 by name
	auth  []string          // of every request
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{files: map[string]string{}, record: func(sum string) string { return sum }}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// send implements [Send], like a server that allows no changes.
func (f *fake) send(_ context.Context, _, path string) error {
	w, err := artifact.Of(path, "")
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent++
	if _, there := f.files[w.Name]; there {
		return errors.New("409: the file exists")
	}
	if sum := f.record(w.SHA256); sum != "" {
		f.files[w.Name] = sum
	}
	return f.answer
}

// ServeHTTP answers with a page of the only project.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	f.auth = append(f.auth, r.Header.Get("Authorization"))
	switch {
	case f.look != nil && f.look(f.looks, w, r):
	case r.URL.Path != "/simple/demo-pkg/":
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", "text/html")
		for name, sum := range f.files {
			fmt.Fprintf(w, "<a href=\"../../files/%s#sha256=%s\">%s</a>\n", url.PathEscape(name), sum, name)
		}
	}
}

const secret = "geheim-4711"

// open is Open with minimal delays between tries, for a user with a password.
func open(t *testing.T, text string, send Send) *Server {
	t.Helper()
	t.Setenv("UV_PUBLISH_USERNAME", "ann")
	t.Setenv("UV_PUBLISH_PASSWORD", secret)
	t.Setenv("UV_PUBLISH_TOKEN", "")
	s := must.Get(Open(text, false, send))(t)
	s.policy = retry.Policy{Tries: 3, First: time.Millisecond, Most: time.Millisecond}
	return s
}

const demo = "demo_pkg-1.0+cu130-py3-none-any.whl"

// wheelWith returns a wheel with the given text.
func wheelWith(t testing.TB, text string) artifact.Artifact {
	t.Helper()
	path := wheeltest.Wheel{Name: demo, Files: []wheeltest.File{{Name: "demo_pkg/__init__.py", Text: text}}}.Write(t)
	a, err := artifact.Of(path, "")
	must.Hold(t, err == nil && strings.HasSuffix(path, string(filepath.Separator)+demo), "%v %v", path, err)
	return a
}
