package main

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"builder/internal/base/diag"
)

// uploads is an upload server with its index, for one project. Stored files never change.
// It shares no code with internal/publishing/upload, because a mistake in shared code
// would stay hidden.
type uploads struct {
	mu    sync.Mutex
	files map[string][]byte
}

// ServeHTTP implements [http.Handler].
func (u *uploads) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if req.Method != http.MethodPost {
		w.Header().Set("Content-Type", "text/html")
		for name, data := range u.files {
			fmt.Fprintf(w, "<a href=\"../../%s#sha256=%s\">it</a>\n", name, sumOf(data))
		}
		return
	}
	file, header, err := req.FormFile("content")
	var data []byte
	if err == nil {
		data, err = io.ReadAll(file)
	}
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case u.files[header.Filename] != nil:
		http.Error(w, "File already exists", http.StatusConflict)
	default:
		u.files[header.Filename] = data
	}
}

func (s *scene) openServer() {
	kept := &uploads{files: map[string][]byte{}}
	s.front = s.serve(kept)
	s.to = "pypi:http://" + s.front.addr + "/"
	s.env["no_proxy"] = "127.0.0.0/8" // uv asks the proxy for this host too
	s.look = func() remains {
		kept.mu.Lock()
		data := kept.files[filepath.Base(s.wheel())]
		kept.mu.Unlock()
		switch {
		case data == nil:
			return nothing
		case !s.sums()[sumOf(data)]:
			s.Errorf("the server has %d bytes that are not the wheel", len(data))
		}
		return whole
	}
}

// Requests to an upload server.
var (
	send = request{http.MethodPost, "", 0}
	see  = request{http.MethodGet, "/simple/", 0}
)

// serverFaults are tried with the pinned uv.
func serverFaults() []fault {
	const name = "tiny-1.0-py3-none-any.whl"
	const uv = "uv takes credentials from UV_PUBLISH_TOKEN, or UV_PUBLISH_USERNAME and UV_PUBLISH_PASSWORD, netrc, or a keyring (UV_KEYRING_PROVIDER=subprocess). If they are right, run the same command again: it sends nothing that the index shows"
	const unseen = "name the index with ?simple=URL, or run the same command again later: it sends nothing that the index shows"
	const other = "give the new file another version or build tag, or find the origin of the published file; builder never replaces it"
	const to = `uploading ` + name + ` to http://127.*/: `
	return []fault{
		{
			"the server stops in the middle of an upload", func(s *scene) { s.dies(send) },
			diag.Publish, to + `uv publish: Failed to publish`, uv, nothing,
		},
		{
			"the answer is lost", func(s *scene) {
				s.breaks(send, 1, func(_ http.ResponseWriter, req *http.Request) {
					s.front.back.ServeHTTP(nobody{}, req)
					panic(http.ErrAbortHandler)
				})
			},
			diag.OK, `^$`, "", whole,
		},
		{
			"403: the user may not upload", func(s *scene) { s.breaks(send, always, says(403)) },
			diag.Publish, to + `uv publish: .*status code 403 Forbidden`, uv, nothing,
		},
		{
			"500 once", func(s *scene) { s.breaks(send, 1, says(500)) },
			diag.Publish, to + `uv publish: .*status code 500 Internal Server Error`, uv, nothing,
		},
		{
			"the server answers 200 and keeps nothing", func(s *scene) { s.breaks(send, always, says(200)) },
			diag.Publish, to + `the server took the file, but its index does not show it`, unseen, nothing,
		},
		{
			"the index shows another digest after the upload", func(s *scene) { s.showsOther() },
			diag.Publish, to + `the server took the file, but its index shows another: .*sha256 0{64}, ours has [0-9a-f]{64}`,
			other, whole,
		},
		{
			"a redirect of the upload to another host", func(s *scene) { s.redirects(send) },
			diag.Publish, to + `uv publish: .*Redirected URL is not in the same realm`, uv, nothing,
		},
		{
			"an interruption", func(s *scene) { s.sends(send, syscall.SIGINT) },
			diag.Interrupted, `interrupt`, "", nothing,
		},
		{
			"the same bytes are published at once", func(s *scene) { s.meets(send, s.made.cell) },
			diag.OK, `^$`, "", whole,
		},
		{
			"other bytes are published at once", func(s *scene) { s.meets(send, s.made.other) },
			diag.Publish, to + `the server has another file named "` + name + `": sha256 [0-9a-f]{64}, ours has [0-9a-f]{64}`,
			other, whole,
		},
	}
}

// showsOther is an index with a wrong digest for every file.
func (s *scene) showsOther() {
	var sent atomic.Bool
	s.front.breaks(func(w http.ResponseWriter, req *http.Request) bool {
		if send.is(req) {
			sent.Store(true)
		}
		if !sent.Load() || !see.is(req) {
			return false
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<a href="../../%s#sha256=%s">it</a>`, filepath.Base(s.wheel()), strings.Repeat("0", 64))
		return true
	})
	s.whenMended(func() { s.front.breaks(nil) })
}

// nobody discards an answer.
type nobody struct{}

func (nobody) Header() http.Header            { return http.Header{} }
func (nobody) Write(data []byte) (int, error) { return io.Discard.Write(data) }
func (nobody) WriteHeader(int)                {}
