package oci

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/registry/remote/auth"

	"builder/internal/base/diag"
	"builder/internal/base/web"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestOpenRepository(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	for text, plain := range map[string]bool{
		"oci://localhost:5000/wheels": true, "oci://127.0.0.1/a/b": true, "oci://registry.example/a/b": false, "oci://10.0.0.1:5000/a": false,
	} {
		r, err := OpenRepository(text, Options{})
		if err != nil || r.String() != text || r.repo.PlainHTTP != plain {
			t.Errorf("%s: %v, %v", text, r, err)
			continue
		}
		r, err = OpenRepository(text, Options{Insecure: true})
		check.That(t, err == nil && r.repo.PlainHTTP, "%s, insecure: %v", text, err)
	}
	for _, text := range []string{
		"", "oci://", "oci://registry.example", "registry.example/a", "https://registry.example/a", "oci://registry.example/a:1",
		"oci://registry.example/A", "oci://registry.example/a?x", "oci:///a", "oci://registry.example/../a",
		"oci://me:" + secret + "@registry.example/a", "oci://registry.example/a@sha256:" + strings.Repeat("a", 64),
	} {
		_, err := OpenRepository(text, Options{})
		check.That(t, diag.CodeOf(err) == diag.Usage && !strings.Contains(err.Error(), secret), "%q: %v", text, err)
	}
	must.Succeed(t, os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(`{"auths":"`+secret), 0o600))
	_, err := OpenRepository("oci://registry.example/a", Options{})
	check.That(t, diag.CodeOf(err) == diag.Usage && !strings.Contains(err.Error(), secret), "a broken configuration: %v", err)
}

// logIn writes a docker configuration with credentials for host.
func logIn(t *testing.T, host string) (header string) {
	t.Helper()
	header = base64.StdEncoding.EncodeToString([]byte("me:" + secret))
	config := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, header)
	must.Succeed(t, os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(config), 0o600))
	return "Basic " + header
}

// guard refuses requests without the header.
func guard(header string, then func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, req *http.Request) bool {
		if req.Header.Get("Authorization") != header {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		return then(w, req)
	}
}

func TestCredentials(t *testing.T) {
	at := newPlace(t, true)
	pass := func(http.ResponseWriter, *http.Request) bool { return false }
	at.breaks(guard("Basic "+base64.StdEncoding.EncodeToString([]byte("me:"+secret)), pass))
	_, err := at.open(t).Push(t.Context(), sample(t, "a"))
	check.That(t, isUnauthorized(err), "without credentials: %v", err)
	header := logIn(t, at.addr)
	want := push(t, at.open(t), sample(t, "a"))
	reads(t, at.open(t), want, sample(t, "a"))
	at.breaks(guard("Basic other", pass))
	_, err = at.open(t).Push(t.Context(), sample(t, "b"))
	check.That(t, isUnauthorized(err), "with wrong ones: %v", err)
	text := fmt.Sprintf("%v %+v", err, err)
	check.That(t, !strings.Contains(text, secret) && !strings.Contains(text, header), "it shows the password: %s", text)
}

// A redirect to another host is followed without credentials for reads and refused for
// writes.
func TestRedirects(t *testing.T) {
	at := newPlace(t, true)
	header := logIn(t, at.addr)
	at.breaks(guard(header, func(http.ResponseWriter, *http.Request) bool { return false }))
	p := sample(t, "a")
	push(t, at.open(t), p)
	var mu sync.Mutex
	var seen []string
	var status atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		seen = append(seen, req.Method+" "+req.Header.Get("Authorization")+req.Header.Get("Cookie"))
		mu.Unlock()
		if s := int(status.Load()); s != 0 {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(s)
			return
		}
		at.keeps.ServeHTTP(w, req)
	}))
	defer other.Close()
	at.breaks(guard(header, func(w http.ResponseWriter, req *http.Request) bool {
		if !strings.Contains(req.URL.Path, "/blobs/") {
			return false
		}
		http.Redirect(w, req, other.URL+req.URL.Path+"?signature="+secret, http.StatusTemporaryRedirect)
		return true
	}))
	r := at.open(t)
	must.Succeed(t, r.Fetch(t.Context(), p.Files[0], t.TempDir()))
	status.Store(http.StatusUnauthorized) // the other host asks for credentials and gets none
	err := r.Fetch(t.Context(), p.Files[0], t.TempDir())
	check.That(t, isUnauthorized(err) && !strings.Contains(err.Error(), secret), "got %v", err)
	status.Store(0)
	_, err = r.Push(t.Context(), sample(t, "b"))
	check.That(t, errors.Is(err, web.ErrElsewhere) && !strings.Contains(err.Error(), secret), "a push: %v", err)
	for _, s := range seen {
		check.That(t, s == "GET " || s == "HEAD ", "the other host saw %q", s)
	}
	check.That(t, len(seen) != 0, "nothing was asked of the other host")
	other.Close()
	err = r.Fetch(t.Context(), p.Files[0], t.TempDir())
	check.That(t, err != nil && !strings.Contains(err.Error(), secret) && strings.Contains(err.Error(), "refused"), "a host that is not there: %v", err)
}

// A registry may continue an upload only on its own host.
func TestUploadsStayWhereTheyAre(t *testing.T) {
	at := newPlace(t, true)
	logIn(t, at.addr)
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	at.breaks(on("POST", "/blobs/uploads/", 9, func(w http.ResponseWriter) {
		w.Header().Set("Location", other.URL+"/x?state="+secret)
		w.WriteHeader(http.StatusAccepted)
	}))
	_, err := at.open(t).Push(t.Context(), sample(t, "a"))
	check.That(t, err != nil && asked.Load() == 0 && !strings.Contains(err.Error(), secret), "%v, the other host was asked %d times", err, asked.Load())
}

// A registry with TLS may not send the password to a token service without TLS.
func TestATokenServiceWithoutTLS(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	defer plain.Close()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+plain.URL+`/token",service="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "https://")
	logIn(t, host)
	r, err := OpenRepository("oci://"+host+"/a", Options{retry: quick})
	must.Succeed(t, err)
	r.repo.PlainHTTP = false // as for any other host
	r.repo.Client.(*auth.Client).Client.Transport = server.Client().Transport
	_, err = r.Resolve(t.Context(), "v1")
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), "uses http but registry was contacted over https"), "got %v", err)
}

func TestTLSIsVerified(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for _, c := range []struct{ host, hint string }{
		{strings.TrimPrefix(server.URL, "https://"), "certificate"},
		{strings.TrimPrefix(plain.URL, "http://"), "plain HTTP"},
		{"127.0.0.1:1", "check the connection"},
	} {
		r, err := OpenRepository("oci://"+c.host+"/a", Options{retry: quick})
		must.Succeed(t, err)
		r.repo.PlainHTTP = false // as for any other host
		before := time.Now()
		_, err = r.Resolve(t.Context(), "v1")
		e, ok := errors.AsType[*diag.Error](err)
		check.That(t, ok && strings.Contains(e.Hint, c.hint) && e.Code == diag.Fetch, "%s: %v (%+v)", c.hint, err, e)
		check.That(t, time.Since(before) <= 5*time.Second, "%s: it took %s", c.hint, time.Since(before))
	}
}

func TestTags(t *testing.T) {
	for name, referrers := range modes {
		t.Run(name, func(t *testing.T) {
			at := newPlace(t, referrers)
			r := at.open(t)
			a := push(t, r, sample(t, "a"))
			b := push(t, r, sample(t, "b"))
			must.Succeed(t, r.Tag(t.Context(), a, "v1", false))
			at.forget()
			err := r.Tag(t.Context(), a, "v1", false)
			check.That(t, err == nil && at.count("PUT") == 0, "once more: %v", err)
			err = r.Tag(t.Context(), b, "v1", false)
			check.That(t, errors.Is(err, errTaken) && strings.Contains(err.Error(), "v1 is "+a+", not "+b) && diag.CodeOf(err) == diag.Publish, "got %v", err)
			got, err := r.Resolve(t.Context(), "v1")
			check.That(t, got == a && err == nil, "it moved to %s, %v", got, err)
			must.Succeed(t, r.Tag(t.Context(), b, "v1", true))
			got, err = r.Resolve(t.Context(), "v1")
			check.That(t, got == b && err == nil, "it did not move: %s, %v", got, err)
			for _, c := range [][2]string{{a, "x y"}, {a, ""}, {a, "a:b"}, {"latest", "v2"}, {digest.FromString("none").String(), "v2"}} {
				err := r.Tag(t.Context(), c[0], c[1], false)
				check.That(t, diag.CodeOf(err) == diag.Publish, "%q: %v", c, err)
			}
		})
	}
}
