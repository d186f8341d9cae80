package oci

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"builder/internal/base/retry"
	"builder/test/kit/must"
	"builder/test/kit/ocitest"
)

// A keeper is a registry for tests. It stores content and can be made to misbehave.
type keeper struct {
	keeps http.Handler
	*httptest.Server
	addr string

	// fault answers a request in place of the registry if it returns true.
	problem atomic.Pointer[func(w http.ResponseWriter, req *http.Request) bool]

	uploaded atomic.Int64 // bytes of blobs received
	mu       sync.Mutex
	asked    []string // method and path of each request
}

var modes = map[string]bool{"with the API of referrers": true, "without": false}

// newPlace starts a registry on this host.
func newPlace(t *testing.T, referrers bool) *keeper {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	p := &keeper{keeps: ocitest.New(referrers)}
	p.start(t, "127.0.0.1:0")
	return p
}

func (p *keeper) start(t *testing.T, addr string) {
	t.Helper()
	listener := must.Get(net.Listen("tcp", addr))(t)
	p.addr = listener.Addr().String()
	p.Server = &httptest.Server{Listener: listener, Config: &http.Server{
		Handler: p, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute,
	}}
	p.Start()
	t.Cleanup(p.Close)
}

type countingBody struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c countingBody) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.n.Add(int64(n))
	return n, err
}

func (p *keeper) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, req.Method+" "+req.URL.Path)
	p.mu.Unlock()
	if req.Method == http.MethodPut && strings.Contains(req.URL.Path, "/blobs/") {
		counted := *req // the server reads its own body after the request
		counted.Body = countingBody{req.Body, &p.uploaded}
		req = &counted
	}
	if f := p.problem.Load(); f != nil && (*f)(w, req) {
		return
	}
	p.keeps.ServeHTTP(w, req)
}

func (p *keeper) breaks(f func(w http.ResponseWriter, req *http.Request) bool) { p.problem.Store(&f) }
func (p *keeper) mend()                                                        { p.problem.Store(nil) }

// count returns the number of requests whose method and path begin with one of methods.
func (p *keeper) count(methods ...string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.asked {
		if slices.ContainsFunc(methods, func(m string) bool { return strings.HasPrefix(a, m) }) {
			n++
		}
	}
	return n
}

func (p *keeper) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = nil
	p.uploaded.Store(0)
}

// open opens the repository wheels/horovod of the registry.
func (p *keeper) open(t *testing.T) *Repository {
	t.Helper()
	return must.Get(OpenRepository("oci://"+p.addr+"/wheels/horovod", Options{retry: quick, silence: 10 * time.Second}))(t)
}

// patient is for publishers that write the same list at once.
var patient = retry.Policy{Tries: 6, First: 50 * time.Millisecond, Most: time.Second}

// file writes a file and returns its size and digest.
func file(t *testing.T, name string, content []byte) File {
	t.Helper()
	path := must.File(t, name, content)
	sum := sha256.Sum256(content)
	return File{Path: path, Name: name, MediaType: "application/zip", SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))}
}

// noise returns random bytes derived from the seed.
func noise(seed string, n int) []byte {
	out := make([]byte, n)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(seed))).Read(out)
	return out
}

const (
	wheelType = "application/vnd.example.wheel.v1"
	proofType = "application/vnd.example.provenance.v1"
)

// sample returns a package of two files and two referrers.
func sample(t *testing.T, seed string) Package {
	t.Helper()
	return Package{
		ArtifactType: wheelType,
		Files:        []File{file(t, "horovod-0.28.1-cp312.whl", noise(seed, 3<<20)), file(t, "entry.json", []byte(`{"of":"`+seed+`"}`))},
		Annotations:  map[string]string{"org.example.key": seed, "org.example.other": "x"},
		Referrers: []Referrer{
			{ArtifactType: proofType, File: file(t, "provenance.json", noise("p"+seed, 1000))},
			{ArtifactType: proofType, File: file(t, "verdicts.json", noise("v"+seed, 2000)), Annotations: map[string]string{"org.example.round": "1"}},
		},
	}
}
