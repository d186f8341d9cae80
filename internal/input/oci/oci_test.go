package oci

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"builder/internal/base/diag"
	"builder/internal/base/retry"
)

// images serves documents under the paths of the distribution API.
type images struct {
	blobs   map[string][]byte // by digest or tag
	types   map[string]string
	fail    atomic.Int32 // number of requests to refuse
	status  int
	user    string // if set, required with the password "secret"
	seen    atomic.Int32
	hanging chan struct{}
	alter   func(digest string, data []byte) []byte // if set, changes the content, not its stated digest; nil is none
}

func (r *images) add(media, name string, content any) string {
	data, _ := json.Marshal(content)
	sum := sha256.Sum256(data)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	for _, key := range []string{digest, name} {
		r.blobs[key], r.types[key] = data, media
	}
	return digest
}

func (r *images) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.seen.Add(1)
	if r.hanging != nil {
		<-r.hanging
		return
	}
	if user, password, _ := req.BasicAuth(); r.user != "" && (user != r.user || password != "secret") {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.fail.Add(-1) >= 0 {
		w.WriteHeader(r.status)
		return
	}
	key := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]
	data, ok := r.blobs[key]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	sum := sha256.Sum256(data)
	w.Header().Set("Content-Type", r.types[key])
	w.Header().Set("Docker-Content-Digest", "sha256:"+hex.EncodeToString(sum[:]))
	if r.alter != nil {
		data = r.alter("sha256:"+hex.EncodeToString(sum[:]), data)
	}
	if data == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	if req.Method != http.MethodHead {
		_, _ = w.Write(data)
	}
}

const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
)

type object = map[string]any

// manifest adds an image for an architecture and returns its digest.
func (r *images) manifest(tag, arch string) string {
	config := r.add(configType, "config-"+arch, object{"os": "linux", "architecture": arch})
	return r.add(manifestType, tag, object{
		"schemaVersion": 2, "mediaType": manifestType, "layers": []object{},
		"config": object{"mediaType": configType, "digest": config, "size": len(r.blobs[config])},
	})
}

// start serves images under three tags. It returns the registry, its host and the
// digest of the amd64 manifest.
func start(t *testing.T) (r *images, host, amd64 string) {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	r = &images{blobs: map[string][]byte{}, types: map[string]string{}}
	amd64 = r.manifest("amd", "amd64")
	arm64 := r.manifest("arm", "arm64")
	var manifests []object
	for digest, arch := range map[string]string{amd64: "amd64", arm64: "arm64"} {
		manifests = append(manifests, object{
			"mediaType": manifestType, "digest": digest, "size": len(r.blobs[digest]),
			"platform": object{"os": "linux", "architecture": arch},
		})
	}
	r.add(indexType, "both", object{"schemaVersion": 2, "mediaType": indexType, "manifests": manifests})
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return r, strings.TrimPrefix(server.URL, "http://"), amd64
}

var quick = retry.Policy{Tries: 3, First: time.Millisecond, Most: time.Millisecond}

func TestResolve(t *testing.T) {
	_, host, amd64 := start(t)
	for _, reference := range []string{"/rocm/dev:both", "/rocm/dev:amd", "/rocm/dev@" + amd64} {
		got, err := resolve(t.Context(), host+reference, time.Minute, Options{retry: quick})
		if err != nil || got != amd64 {
			t.Errorf("%s: got %q, %v", reference, got, err)
		}
	}
}

func TestFind(t *testing.T) {
	_, host, amd64 := start(t)
	for _, reference := range []string{"/rocm/dev:both", "/rocm/dev@" + amd64} {
		if err := Find(t.Context(), host+reference); err != nil {
			t.Errorf("%s: %v", reference, err)
		}
	}
	if err := Find(t.Context(), host+"/rocm/dev:gone"); !errors.Is(err, ErrAbsent) {
		t.Errorf("a missing image: %v", err)
	}
}

func TestResolveFails(t *testing.T) {
	r, host, _ := start(t)
	for _, c := range []struct {
		reference, want string
		code            diag.Code
	}{
		{host + "/rocm/dev:none", "not in the registry", diag.Fetch},
		{host + "/rocm/dev:arm", "for linux/amd64", diag.Fetch},
		{"127.0.0.1:1/rocm/dev:both", "refused", diag.Fetch},
		{host + "/rocm/dev", "no tag and no digest", diag.Usage},
		{host + "/ROCM:x:y", "invalid", diag.Usage},
		{"", "invalid", diag.Usage},
	} {
		before := r.seen.Load()
		_, err := resolve(t.Context(), c.reference, time.Minute, Options{retry: quick})
		if err == nil || diag.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.reference) {
			t.Errorf("%q: got %v (%v)", c.reference, err, diag.CodeOf(err))
		}
		if n := r.seen.Load() - before; n > 4 {
			t.Errorf("%q was asked for %d times", c.reference, n)
		}
	}
}

func TestResolveTriesAgain(t *testing.T) {
	r, host, amd64 := start(t)
	r.status = http.StatusBadGateway
	r.fail.Store(2)
	if got, err := resolve(t.Context(), host+"/rocm/dev:both", time.Minute, Options{retry: quick}); err != nil || got != amd64 {
		t.Errorf("after two failures: %q, %v", got, err)
	}
	r.fail.Store(100)
	_, err := resolve(t.Context(), host+"/rocm/dev:both", time.Minute, Options{retry: quick})
	if diag.CodeOf(err) != diag.Fetch || !strings.Contains(err.Error(), "502") {
		t.Errorf("got %v", err)
	}
}

func TestResolveDoesNotWaitForEver(t *testing.T) {
	r, host, _ := start(t)
	r.hanging = make(chan struct{})
	defer close(r.hanging)
	_, err := resolve(t.Context(), host+"/rocm/dev:both", 50*time.Millisecond, Options{retry: quick})
	if diag.CodeOf(err) != diag.Fetch || !strings.Contains(err.Error(), "did not answer within 50ms") {
		t.Errorf("a silent registry: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := resolve(ctx, host+"/rocm/dev:both", time.Minute, Options{retry: quick}); diag.CodeOf(err) != diag.Interrupted {
		t.Errorf("a cancelled one: %v", err)
	}
}

func TestResolveWithCredentials(t *testing.T) {
	r, host, amd64 := start(t)
	r.user = "me"
	if _, err := resolve(t.Context(), host+"/rocm/dev:both", time.Minute, Options{retry: quick}); err == nil || !strings.Contains(err.Error(), "credential") && !strings.Contains(err.Error(), "401") {
		t.Errorf("without credentials: %v", err)
	}
	config := fmt.Sprintf(`{"auths":{%q:{"auth":"bWU6c2VjcmV0"}}}`, host) // me:secret
	if err := os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := resolve(t.Context(), host+"/rocm/dev:both", time.Minute, Options{retry: quick}); err != nil || got != amd64 {
		t.Errorf("with docker's: %q, %v", got, err)
	}
}

// Short names are completed as in other container tools.
func TestShortNames(t *testing.T) {
	for in, want := range map[string]string{
		"debian:12":                 "library/debian:12",
		"rocm/dev-ubuntu-22.04:6.1": "rocm/dev-ubuntu-22.04:6.1",
		"localhost/a:1":             "a:1",
		"localhost:5000/a:1":        "a:1",
		"registry.example/a/b:1":    "a/b:1",
	} {
		r, err := open(in, Options{})
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := r.repo.Reference.Repository + ":" + r.repo.Reference.Reference; got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
		host, _, named := strings.Cut(in, "/")
		if named && strings.ContainsAny(host, ".:") && r.repo.Reference.Registry != host {
			t.Errorf("%s: the registry is %s", in, r.repo.Reference.Registry)
		}
	}
}

func TestEndpoint(t *testing.T) {
	for in, want := range map[string]string{
		"registry.example/a/b:1":                          "https://registry.example/v2/",
		"localhost:5000/a:1":                              "http://localhost:5000/v2/",
		"127.0.0.1:1/a@sha256:" + strings.Repeat("0", 64): "http://127.0.0.1:1/v2/",
		"registry.example:8443/a:1":                       "https://registry.example:8443/v2/",
		"registry.example/a":                              "",
		"https://registry.example/a:1":                    "",
	} {
		if got, err := Endpoint(in); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
}
