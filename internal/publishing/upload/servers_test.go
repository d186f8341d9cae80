package upload

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"builder/internal/base/diag"
	"builder/internal/files/artifact"
	"builder/internal/input/pypi"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

// tools are real servers, in a temporary directory of the test.
type tools struct{ bin string }

// install creates a virtual environment with all tools, from the host's package index.
func install(t *testing.T) tools {
	dir := filepath.Join(t.TempDir(), "venv")
	command(t, os.Environ(), "python3", "-m", "venv", dir)
	v := tools{filepath.Join(dir, "bin")}
	command(t, os.Environ(), v.path("pip"), "install", "-q", "pypiserver", "passlib", "devpi-server")
	return v
}

func (v tools) path(name string) string { return filepath.Join(v.bin, name) }

// clean returns the environment without the host's index settings.
func clean() []string {
	env := slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return strings.HasPrefix(pair, "PIP_") || strings.HasPrefix(pair, "UV_")
	})
	return append(env, "PIP_CONFIG_FILE="+os.DevNull, "UV_NO_CONFIG=1", "UV_NO_CACHE=1", "UV_PYTHON_DOWNLOADS=never")
}

func command(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Env = env
	out, err := c.CombinedOutput()
	must.Hold(t, err == nil, "%s %q: %v\n%s", name, args, err, out)
	return string(out)
}

// serve starts a server and waits until it answers.
func serve(t *testing.T, address, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var out bytes.Buffer
	c := exec.CommandContext(ctx, name, args...)
	c.Stdout, c.Stderr, c.Env = &out, &out, clean()
	must.Succeed(t, c.Start())
	ended := make(chan struct{})
	go func() { c.Wait(); close(ended) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Logf("%s said:\n%s", name, out.String())
		}
	})
	for range 600 {
		if resp, err := http.Get(address); err == nil {
			resp.Body.Close()
			return
		}
		select {
		case <-ended:
			t.Fatalf("%s ended:\n%s", name, out.String())
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatalf("%s does not answer", name)
}

func write(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func freePort(t *testing.T) string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	must.Succeed(t, err)
	return port
}

// pypiserver starts a pypiserver with a password. By default it redirects to another
// index for missing packages.
func (v tools) pypiserver(t *testing.T) string {
	dir, port := t.TempDir(), freePort(t)
	hash := sha1.Sum([]byte(secret))
	users := write(t, "htpasswd", "ann:{SHA}"+base64.StdEncoding.EncodeToString(hash[:])+"\n")
	address := "http://127.0.0.1:" + port + "/"
	serve(t, address, v.path("pypi-server"), "run", "-i", "127.0.0.1", "-p", port, "-a", "update", "-P", users, dir)
	return address
}

// devpi starts a devpi with an index of the user ann. volatile allows replacing files.
func (v tools) devpi(t *testing.T, volatile bool) string {
	dir, port := t.TempDir(), freePort(t)
	command(t, clean(), v.path("devpi-init"), "--serverdir", dir, "--no-root-pypi")
	address := "http://127.0.0.1:" + port + "/"
	serve(t, address+"+api", v.path("devpi-server"), "--serverdir", dir, "--host", "127.0.0.1", "--port", port)
	put := func(path, body, password string) {
		t.Helper()
		req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPut, address+path, strings.NewReader(body)))(t)
		req.Header.Set("Content-Type", "application/json")
		if password != "" {
			req.SetBasicAuth("ann", password)
		}
		resp := must.Get(http.DefaultClient.Do(req))(t)
		resp.Body.Close()
		must.Hold(t, resp.StatusCode/100 == 2, "%s: %s", path, resp.Status)
	}
	put("ann", `{"password":"`+secret+`"}`, "")
	put("ann/dev", fmt.Sprintf(`{"type":"stage","bases":[],"volatile":%v}`, volatile), secret)
	return address + "ann/dev/"
}

// Real servers and the pinned uv must agree about the protocol. The test
// needs BUILDER_TEST_SERVERS=1, python3 and an index to install from.
func TestRealServers(t *testing.T) {
	if os.Getenv("BUILDER_TEST_SERVERS") != "1" {
		t.Skip("BUILDER_TEST_SERVERS=1 installs and starts pypiserver and devpi")
	}
	v := install(t)
	uv := must.Get(pypi.Programs{Home: t.TempDir(), Note: t.Logf, NoInstall: true}.UV(t.Context()))(t)
	t.Run("a redirect to another host", func(t *testing.T) {
		other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			t.Errorf("another host was asked: %s %s", r.Method, r.URL)
		}))
		defer other.Close()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
				return
			}
			http.NotFound(w, r)
		}))
		defer server.Close()
		_, err := open(t, server.URL, uv.Publish).Upload(t.Context(), wheelWith(t, "a = 1\n"))
		check.That(t, diag.CodeOf(err) == diag.Publish, "%v", err)
	})
	for name, c := range map[string]struct {
		start  func(*testing.T) string
		simple string
		keeps  bool // the server itself refuses other bytes
	}{
		"pypiserver":     {v.pypiserver, "simple/", true},
		"devpi":          {func(t *testing.T) string { return v.devpi(t, false) }, "+simple/", true},
		"devpi volatile": {func(t *testing.T) string { return v.devpi(t, true) }, "+simple/", false},
	} {
		t.Run(name, func(t *testing.T) {
			address := c.start(t)
			w, other := wheelWith(t, "a = 1\n"), wheelWith(t, "a = 2\n")
			s := open(t, address, uv.Publish)
			t.Setenv("UV_PUBLISH_PASSWORD", "wrong-4711")
			_, err := s.Upload(t.Context(), w)
			if err == nil || diag.CodeOf(err) != diag.Publish || !strings.Contains(err.Error(), " 401 ") && !strings.Contains(err.Error(), " 403 ") {
				t.Errorf("wrong password: %v", err)
			}
			t.Logf("wrong password: %v", err)
			t.Setenv("UV_PUBLISH_PASSWORD", secret)
			for _, want := range []bool{false, true} {
				existed, err := s.Upload(t.Context(), w)
				must.Hold(t, existed == want && err == nil, "%v, %v", existed, err)
			}
			if existed, err := open(t, address+"?simple="+c.simple, uv.Publish).Upload(t.Context(), w); !existed || err != nil {
				t.Errorf("with the index named: %v, %v", existed, err)
			}
			if _, err = s.Upload(t.Context(), other); !errors.Is(err, errConflict) {
				t.Errorf("other bytes: %v", err)
			}
			t.Logf("other bytes: %v", err)
			s.overtaken(t, w, other, c.keeps)
		})
	}
}

// overtaken uploads a third wheel while somebody else uploads other bytes under its name.
// A server that replaces files has the later ones afterwards, and the index tells.
func (s *Server) overtaken(t *testing.T, first, second artifact.Artifact, keeps bool) {
	t.Helper()
	named := func(w artifact.Artifact) artifact.Artifact {
		path := wheeltest.Wheel{Name: "later-1.0-py3-none-any.whl", Files: []wheeltest.File{{Name: "later/__init__.py", Text: w.SHA256}}}.Write(t)
		return must.Get(artifact.Of(path, ""))(t)
	}
	ours, theirs, send := named(first), named(second), s.send
	defer func() { s.send = send }()
	s.send = func(ctx context.Context, address, path string) error {
		if keeps {
			return errors.Join(send(ctx, address, theirs.Path), send(ctx, address, path))
		}
		return errors.Join(send(ctx, address, path), send(ctx, address, theirs.Path))
	}
	_, err := s.Upload(t.Context(), ours)
	check.That(t, errors.Is(err, errConflict), "overtaken: %v", err)
	t.Logf("overtaken: %v", err)
}
