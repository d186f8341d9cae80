package fetch_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"builder/internal/build/fetch"
	"builder/internal/input/deb"
	"builder/internal/input/pypi"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// noise returns pseudo-random content that differs for each seed.
func noise(seed, size int) []byte {
	data := make([]byte, size)
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// pack describes content as a Debian package, and file as a file of the Python index.
func pack(name string, data []byte) deb.Package {
	return deb.Package{
		Name: name, Version: "1", Architecture: "amd64", Path: "pool/main/" + name + "_1_amd64.deb",
		Size: int64(len(data)), SHA256: digest(data),
	}
}

func file(project, suffix string, data []byte) pypi.File {
	return pypi.File{Project: project, Version: "1", Filename: project + "-1" + suffix, Size: int64(len(data)), SHA256: digest(data)}
}

const (
	wheel = "-py3-none-any.whl"
	sdist = ".tar.gz"
)

// answer handles the n-th request for a path, counted from 1.
type answer func(n int, w http.ResponseWriter, r *http.Request)

// serves answers with data and supports ranges.
func serves(data []byte) answer {
	return func(_ int, w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}
}

// says answers with a status.
func says(code int) answer {
	return func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// mirror serves files by base name and records the requests.
type mirror struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string // path, and the range if the request has one
}

func newMirror(t *testing.T, answers map[string]answer) *mirror {
	t.Helper()
	m := &mirror{}
	count := map[string]int{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := filepath.Base(r.URL.Path)
		m.mu.Lock()
		m.asked = append(m.asked, strings.TrimSpace(r.URL.Path+" "+r.Header.Get("Range")))
		count[name]++
		n := count[name]
		m.mu.Unlock()
		if answer, ok := answers[name]; ok {
			answer(n, w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(m.Close)
	return m
}

// requests returns the recorded requests, sorted.
func (m *mirror) requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(slices.Values(m.asked))
}

// newFetcher returns a fetcher with an empty store. A call of uv fails the test.
func newFetcher(t *testing.T, mirrors ...*mirror) *fetch.Fetcher {
	t.Helper()
	s := must.Get(store.Open(filepath.Join(t.TempDir(), "store")))(t)
	f := &fetch.Fetcher{Store: s, Scratch: t.TempDir(), Overrides: map[string][]string{}, UV: func(context.Context) (pypi.Tool, error) {
		t.Error("uv was asked for")
		return pypi.Tool{}, errors.New("no uv")
	}}
	var addresses []string
	for _, m := range mirrors {
		addresses = append(addresses, m.URL+"/debian")
	}
	f.Mirrors = func() []string { return addresses }
	return f
}

// entry returns an entry with its source in the store of f and with an image made of
// packages.
func entry(t *testing.T, f *fetch.Fetcher, packages ...deb.Package) lock.Entry {
	t.Helper()
	source := []byte("source")
	must.Get(f.Store.Put(bytes.NewReader(source)))(t)
	return lock.Entry{
		Source: lock.SourcePin{File: file("tool", sdist, source)},
		Image:  lock.Image{Pin: lock.ImagePin{Name: "base", Date: "20261121T000000Z", Packages: packages}},
	}
}

// has reports whether the store of f holds data. Damaged content is a test error.
func has(t *testing.T, f *fetch.Fetcher, data []byte) bool {
	t.Helper()
	b := store.Blob{Name: "?", Size: int64(len(data)), SHA256: digest(data)}
	if _, ok := f.Store.Path(b); !ok {
		return false
	}
	err := f.Store.Verify(b)
	check.That(t, err == nil, "%v", err)
	return true
}

// fakeUV returns a uv that reports places as the addresses of files, and a function
// that returns its requests.
func fakeUV(t *testing.T, places map[string]pypi.File) (uv func(context.Context) (pypi.Tool, error), asked func() string) {
	t.Helper()
	isolate(t)
	dir := t.TempDir()
	var answer strings.Builder
	answer.WriteString("lock-version = \"1.0\"\ncreated-by = \"uv\"\n")
	for url, f := range places {
		fmt.Fprintf(&answer, "[[packages]]\nname = %q\nversion = %q\nwheels = [{ url = %q, hashes = { sha256 = %q } }]\n",
			f.Project, f.Version, url, f.SHA256)
	}
	script := fmt.Sprintf("#!/bin/sh\ncat pyproject.toml >>%[1]s/asked\ncp %[1]s/answer pylock.toml\n", dir)
	must.Succeed(t,
		os.WriteFile(filepath.Join(dir, "uv"), []byte(script), 0o755),
		os.WriteFile(filepath.Join(dir, "answer"), []byte(answer.String()), 0o644),
	)
	tool := pypi.Tool{Path: filepath.Join(dir, "uv")}
	return func(context.Context) (pypi.Tool, error) { return tool, nil }, func() string {
		data, _ := os.ReadFile(filepath.Join(dir, "asked"))
		return string(data)
	}
}

// isolate hides the host's configuration of Python indexes.
func isolate(t *testing.T) {
	t.Helper()
	for _, name := range os.Environ() {
		name, _, _ = strings.Cut(name, "=")
		if strings.HasPrefix(name, "PIP_") || strings.HasPrefix(name, "UV_") {
			t.Setenv(name, "")
		}
	}
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"} {
		t.Setenv(name, t.TempDir())
	}
	t.Setenv("UV_DEFAULT_INDEX", "https://mirror.example/simple")
}

// An entry that nobody signed cannot name a file outside of the scratch directory.
func TestSourceOfAHostileEntry(t *testing.T) {
	kept, err := store.Open(t.TempDir())
	must.Succeed(t, err)
	repository := t.TempDir()
	f := &fetch.Fetcher{Store: kept, Scratch: t.TempDir(), Overrides: map[string][]string{"tests": {repository}}}
	good := lock.SourcePin{Commit: strings.Repeat("a", 40), Epoch: 1}
	good.File = pypi.File{Project: "tests", Version: "1", Filename: "tests.tar", SHA256: strings.Repeat("b", 64), Size: 1}
	for name, change := range map[string]func(*lock.SourcePin){
		"a path":      func(p *lock.SourcePin) { p.Filename = "../../tests.tar" },
		"no file":     func(p *lock.SourcePin) { p.Filename = "" },
		"an absolute": func(p *lock.SourcePin) { p.Filename = "/etc/passwd" },
		"an option":   func(p *lock.SourcePin) { p.Commit = "--output=/etc/passwd" },
		"no digest":   func(p *lock.SourcePin) { p.SHA256 = "" },
	} {
		pin := good
		change(&pin)
		_, err := f.Source(t.Context(), pin, io.Discard)
		check.Fails(t, err, "the entry's source of tests", name)
	}
	f.Overrides = nil
	_, err = f.Source(t.Context(), good, io.Discard)
	check.That(t, errors.Is(err, fs.ErrNotExist), "without a place: %v", err)
}
