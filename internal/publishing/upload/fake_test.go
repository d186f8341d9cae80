package upload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"builder/internal/base/retry"
	"builder/internal/files/artifact"
	"builder/test/kit/wheeltest"
)

// fake is a minimal upload server with its index.
type fake struct {
	*httptest.Server
	json bool
	// fault may answer the n-th upload, counted from 1, in place of the server. It
	// returns whether it did.
	fault func(n int, w http.ResponseWriter, r *http.Request) bool
	// look does the same for requests to the index.
	look func(n int, w http.ResponseWriter, r *http.Request) bool

	mu     sync.Mutex
	posts  int
	looks  int
	files  map[string]string // sha256 by name
	fields []url.Values
	auth   []string // of every request
}

func newFake(t *testing.T) *fake {
	f := &fake{files: map[string]string{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.auth = append(f.auth, r.Header.Get("Authorization"))
	n, fault := 0, f.look
	if r.Method == http.MethodPost {
		f.posts++
		n, fault = f.posts, f.fault
	} else {
		f.looks++
		n = f.looks
	}
	f.mu.Unlock()
	switch {
	case fault != nil && fault(n, w, r):
	case r.Method == http.MethodPost:
		f.take(w, r)
	default:
		f.show(w, r)
	}
}

// take stores an upload, like a server that allows no changes.
func (f *fake) take(w http.ResponseWriter, r *http.Request) {
	name, sum, ok := f.receive(w, r)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, there := f.files[name]; there {
		http.Error(w, "File already exists", http.StatusConflict)
		return
	}
	f.files[name] = sum
}

func (f *fake) receive(w http.ResponseWriter, r *http.Request) (name, sum string, ok bool) {
	if err := r.ParseMultipartForm(1 << 20); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return "", "", false
	}
	file, header, err := r.FormFile("content")
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return "", "", false
	}
	h := sha256.New()
	io.Copy(h, file)
	sum = hex.EncodeToString(h.Sum(nil))
	if r.FormValue(":action") != "file_upload" || r.FormValue("protocol_version") != "1" || r.FormValue("sha256_digest") != sum {
		http.Error(w, "bad form", http.StatusBadRequest)
		return "", "", false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fields = append(f.fields, url.Values(r.MultipartForm.Value))
	return header.Filename, sum, true
}

func (f *fake) show(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !strings.HasPrefix(r.URL.Path, "/simple/") || len(f.files) == 0 {
		http.NotFound(w, r)
		return
	}
	names := slices.Sorted(maps.Keys(f.files))
	if !f.json {
		w.Header().Set("Content-Type", "text/html")
		for _, name := range names {
			fmt.Fprintf(w, "<a href=\"../../files/%s#sha256=%s\">%s</a>\n", url.PathEscape(name), f.files[name], name)
		}
		return
	}
	files := []any{}
	for _, name := range names {
		files = append(files, map[string]any{"filename": name, "url": name, "hashes": map[string]string{"sha256": f.files[name]}})
	}
	w.Header().Set("Content-Type", jsonPage)
	json.NewEncoder(w).Encode(map[string]any{"meta": map[string]string{"api-version": "1.1"}, "name": "demo", "files": files})
}

const secret = "geheim-4711"

// open is Open with minimal delays between tries, for a user with a password.
func open(t *testing.T, text string, o Options) *Server {
	t.Helper()
	if o.env == nil {
		o.env = env("BUILDER_PUBLISH_USERNAME=ann", "BUILDER_PUBLISH_PASSWORD="+secret)
	}
	o.keyring = func(string, string) string { return "" }
	s, err := Open(t.Context(), text, o)
	if err != nil {
		t.Fatal(err)
	}
	s.policy = retry.Policy{Tries: 3, First: time.Millisecond, Most: time.Millisecond}
	s.shown = s.policy
	return s
}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for _, pair := range pairs {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

const demo = "demo_pkg-1.0+cu130-py3-none-any.whl"

// small returns a wheel with the given text.
func small(t testing.TB, text string) artifact.Artifact {
	t.Helper()
	return measure(t, wheeltest.Wheel{Name: demo, Files: []wheeltest.File{{Name: "demo_pkg/__init__.py", Text: text}}}.Write(t))
}

const largeName = "large_pkg-1.0-py3-none-any.whl"

// largeBytes is computed once, because it is slow under the race detector.
var largeBytes = sync.OnceValue(func() []byte {
	var noise strings.Builder
	for sum := sha256.Sum256(nil); noise.Len() < 8<<20; sum = sha256.Sum256(sum[:]) {
		noise.WriteString(string(sum[:]))
	}
	return wheeltest.Wheel{Name: largeName, Files: []wheeltest.File{{Name: "large_pkg/noise", Text: noise.String()}}}.Bytes()
})

// large returns a wheel too large for the buffers of a connection.
func large(t testing.TB) artifact.Artifact {
	t.Helper()
	return measure(t, write(t, filepath.Join(t.TempDir(), largeName), string(largeBytes()), 0o600))
}

func measure(t testing.TB, path string) artifact.Artifact {
	t.Helper()
	a, err := artifact.Of(path, "")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// cutConnection closes a connection without an answer.
func cutConnection(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		conn.Close()
	}
}

func write(t testing.TB, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}
