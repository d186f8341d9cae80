package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"builder/internal/base/diag"
	"builder/internal/input/oci"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/ocitest"
)

func (s *scene) openRegistry() {
	s.front = s.serve(ocitest.New(true))
	s.to = "oci://" + s.front.addr + "/wheels"
	who := map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte("builder:" + password))}
	data, err := json.Marshal(map[string]any{"auths": map[string]any{s.front.addr: who}})
	s.check(err)
	s.check(os.MkdirAll(s.env["DOCKER_CONFIG"], 0o700))
	s.check(os.WriteFile(filepath.Join(s.env["DOCKER_CONFIG"], "config.json"), data, 0o600))
	behind := httptest.NewServer(s.front.back)
	s.Cleanup(behind.Close)
	s.look = func() remains {
		return s.lookIntoRegistry("oci://" + strings.TrimPrefix(behind.URL, "http://") + "/wheels")
	}
}

// Requests to a registry.
var (
	anyRequest = request{}
	sendWheel  = request{http.MethodPut, "/blobs/uploads/", largest}
	sendTag    = request{http.MethodPut, "/manifests/tiny-1.0", 0}
	sendKey    = request{http.MethodPut, "/manifests/key-", 0}
)

func registryFaults() []fault {
	return []fault{
		{
			"the server stops between two tags", func(s *scene) { s.dies(sendKey) },
			diag.Publish, `tagging sha256:[0-9a-f]{64} as "key-[0-9a-f]{64}" in oci://127.*/wheels: .*refused`,
			"check the connection from this host to HOST, and try again; uploaded files are not sent twice", partly,
		},
		{
			"401: the password is wrong", func(s *scene) { s.breaks(anyRequest, always, says(401, "WWW-Authenticate", `Basic realm="x"`)) },
			diag.Publish, `oci://127.*/wheels: the registry answered 401 Unauthorized`,
			"HOST accepts no credentials of docker's configuration: run docker login HOST", nothing,
		},
		{
			"an interruption", func(s *scene) { s.sends(sendWheel, syscall.SIGINT) },
			diag.Interrupted, `interrupt`, "", nothing,
		},
		{
			"builder is killed", func(s *scene) { s.sends(sendWheel, syscall.SIGKILL) },
			killed, ``, "", nothing,
		},
		{
			"builder is killed before it sets a tag", func(s *scene) { s.sends(sendTag, syscall.SIGKILL) },
			killed, ``, "", nothing,
		},
		{
			"other bytes are published at once", func(s *scene) { s.meets(sendTag, s.made.other) },
			diag.Publish, `tagging sha256:[0-9a-f]{64} as "tiny-1.0" in oci://127.*/wheels: the tag tiny-1.0 names sha256:[0-9a-f]{64}, not sha256:[0-9a-f]{64}`,
			"builder never moves this tag: publish to another repository, or under another name; if the cell has another key because its lock was renewed, give its recipe a new version, or remove the published one with the registry's own tool", whole,
		},
	}
}

// lookIntoRegistry pulls the package of a tag like a client. All files and referrers
// must exist.
func (s *scene) lookIntoRegistry(address string) remains {
	s.Helper()
	r, err := oci.OpenRepository(address, oci.Options{})
	s.check(err)
	tags, err := r.Tags(s.Context())
	if errors.Is(err, oci.ErrAbsent) || err == nil && len(tags) == 0 {
		return nothing
	}
	s.check(err)
	meant := map[string]bool{}
	for _, tag := range tags {
		digest, err := r.Resolve(s.Context(), tag)
		check.That(s, err == nil, "the tag %s: %v", tag, err)
		meant[digest] = true
	}
	must.Hold(s, len(meant) == 1, "the tags %v stand for %v", tags, meant)
	for digest := range meant {
		s.pull(r, digest)
	}
	if len(tags) == 3 {
		return whole
	}
	return partly
}

// pull fetches a package and its referrers.
func (s *scene) pull(r *oci.Repository, digest string) {
	s.Helper()
	m, err := r.Manifest(s.Context(), digest)
	s.check(err)
	about, err := r.Referrers(s.Context(), digest)
	s.check(err)
	said, err := os.ReadDir(s.wheel() + ".attestations")
	s.check(err)
	check.That(s, len(about) == len(said), "%d documents speak of it, want %d", len(about), len(said))
	for _, a := range about {
		m.Files = append(m.Files, a.Files...)
	}
	dir := s.TempDir()
	for _, f := range m.Files {
		err := r.Fetch(s.Context(), f, dir)
		check.That(s, err == nil, "%s cannot be read: %v", f.Name, err)
	}
	check.That(s, slices.ContainsFunc(m.Files, func(f oci.File) bool { return s.sums()[f.SHA256] }), "there is no wheel in %v", m.Files)
}
