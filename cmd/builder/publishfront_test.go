package main

import (
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"builder/test/kit/check"
)

// A front is a proxy before a server. It requires the password and can misbehave. The
// server behind it keeps its state: a restart of the front looks like a restart of the
// server.
type front struct {
	back   http.Handler
	addr   string // on this host
	mu     sync.Mutex
	server *http.Server
	fault  func(w http.ResponseWriter, req *http.Request) bool // replaces the answer if it returns true
}

// fronts counts the fronts of this test process.
var fronts atomic.Uint32

// serve starts a front before the handler. It ends with the scene.
func (s *scene) serve(back http.Handler) *front {
	s.Helper()
	// An address of its own: while the server is down, no other test's server gets its port.
	n := fronts.Add(1)
	f := &front{back: back, addr: fmt.Sprintf("127.1.%d.%d:0", n>>8&255, n&255)}
	s.check(f.start())
	s.Cleanup(f.kill)
	return f
}

func (f *front) start() error {
	listener, err := net.Listen("tcp", f.addr)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addr = listener.Addr().String()
	f.server = &http.Server{Handler: f, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	go f.server.Serve(listener) //nolint:errcheck // it ends with kill
	return nil
}

// kill ends the server and all its connections.
func (f *front) kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.server.Close()
}

func (f *front) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	f.mu.Lock()
	fault := f.fault
	f.mu.Unlock()
	if fault != nil && fault(w, req) {
		return
	}
	if _, got, _ := req.BasicAuth(); got != password {
		w.Header().Set("WWW-Authenticate", `Basic realm="wheels"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	f.back.ServeHTTP(w, req)
}

func (f *front) breaks(fault func(w http.ResponseWriter, req *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// A request matches requests with the method ("" for any), a path containing the text,
// and a body of at least the given size in bytes.
type request struct {
	method, path string
	least        int64
}

func (r request) is(req *http.Request) bool {
	return (r.method == "" || r.method == req.Method) && strings.Contains(req.URL.Path, r.path) && req.ContentLength >= r.least
}

// always is more than the number of any test's requests.
const always = 1 << 20

// breaks answers the first n matching requests instead of the server.
func (s *scene) breaks(at request, n int32, answer http.HandlerFunc) {
	var left atomic.Int32
	left.Store(n)
	s.front.breaks(func(w http.ResponseWriter, req *http.Request) bool {
		if !at.is(req) || left.Add(-1) < 0 {
			return false
		}
		answer(w, req)
		return true
	})
	s.whenMended(func() {
		s.front.breaks(nil)
		check.That(s, left.Load() != n, "nobody met the fault")
	})
}

// says answers with a status and repeats the request's credentials, as some servers do.
func says(status int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "you are "+req.Header.Get("Authorization")+" with "+password)
	}
}

// some reads a part of the body.
func some(req *http.Request) { _, _ = io.CopyN(io.Discard, req.Body, largest/2) }

// dies kills the server during a request. The server stays down until the fault is
// mended.
func (s *scene) dies(at request) {
	s.breaks(at, 1, func(_ http.ResponseWriter, req *http.Request) {
		some(req)
		s.front.kill()
	})
	s.whenMended(func() { s.check(s.front.start()) })
}

// sends sends a signal to the program during a request and waits until the request
// ends.
func (s *scene) sends(at request, sig syscall.Signal) {
	s.breaks(at, 1, func(_ http.ResponseWriter, req *http.Request) {
		some(req)
		s.signal(sig)
		if _, err := io.Copy(io.Discard, req.Body); err == nil {
			<-req.Context().Done()
		}
	})
}

// meets publishes a second result at the same time. Both reach the same request before
// either is processed, and both are processed before either is answered.
func (s *scene) meets(at request, other string) {
	s.other = other
	var before, after sync.WaitGroup
	before.Add(2)
	after.Add(2)
	var met atomic.Int32
	s.front.breaks(func(w http.ResponseWriter, req *http.Request) bool {
		if !at.is(req) || met.Add(1) > 2 {
			return false
		}
		answer := httptest.NewRecorder()
		before.Done()
		before.Wait()
		s.front.back.ServeHTTP(answer, req)
		after.Done()
		after.Wait()
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
		return true
	})
	s.whenMended(func() { s.front.breaks(nil) })
}

// redirects redirects a request to another host, which must not be asked.
func (s *scene) redirects(at request) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.Errorf("another host was asked: %s %s", req.Method, req.URL)
		w.WriteHeader(http.StatusTeapot)
	}))
	s.Cleanup(other.Close)
	s.breaks(at, always, func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, other.URL+req.URL.RequestURI(), http.StatusTemporaryRedirect)
	})
}
