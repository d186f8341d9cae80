// Package uploadtest provides an in-process upload server with its index, for tests.
//
// The package shares no code with internal/publishing/upload, because a mistake in
// shared code would stay hidden.
package uploadtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// maxForm limits the part of an upload held in memory, in bytes.
const maxForm = 64 << 20

// A Server accepts wheels at / and lists them in the index below /simple/, which has a
// single project. Stored files never change. The zero value is ready to use.
type Server struct {
	mu    sync.Mutex
	files map[string][]byte
}

// File returns the file with the given name, and whether it exists.
func (s *Server) File(name string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.files[name]
	return bytes.Clone(data), ok
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch {
	case req.Method == http.MethodPost:
		s.take(w, req)
	case strings.HasPrefix(req.URL.Path, "/simple/"):
		s.show(w, req)
	default:
		http.NotFound(w, req)
	}
}

// take stores a file if its digest matches the form.
func (s *Server) take(w http.ResponseWriter, req *http.Request) {
	name, data, err := received(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.files[name]; there {
		http.Error(w, "File already exists", http.StatusConflict)
		return
	}
	if s.files == nil {
		s.files = map[string][]byte{}
	}
	s.files[name] = data
}

// received reads the whole form before it uses any field.
func received(req *http.Request) (name string, data []byte, err error) {
	if err := req.ParseMultipartForm(maxForm); err != nil {
		return "", nil, err
	}
	file, header, err := req.FormFile("content")
	if err != nil {
		return "", nil, err
	}
	defer file.Close()
	if data, err = io.ReadAll(file); err != nil {
		return "", nil, err
	}
	if sum := digest(data); req.FormValue(":action") != "file_upload" || req.FormValue("sha256_digest") != sum {
		return "", nil, fmt.Errorf("%s differs from its form: its sha256 is %s", header.Filename, sum)
	}
	return header.Filename, data, nil
}

// show answers with a page of PEP 503.
func (s *Server) show(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "text/html")
	for name, data := range s.files {
		fmt.Fprintf(w, "<a href=\"../../%s#sha256=%s\">%s</a>\n", url.PathEscape(name), digest(data), name)
	}
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
