package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"builder/internal/base/diag"
	"builder/internal/input/oci"
	"builder/test/kit/ocitest"
)

// elsewhere is a registry on another host, reachable only through a proxy.
const elsewhere = "example.com:5000"

func (s *scene) openRegistry() {
	s.front = s.serve(ocitest.New(true))
	s.to = "oci://" + s.front.addr + "/wheels"
	who := map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte("builder:" + password))}
	data, err := json.Marshal(map[string]any{"auths": map[string]any{s.front.addr: who, elsewhere: who}})
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
	anyRequest   = request{}
	startBlob    = request{http.MethodPost, "/blobs/uploads/", 0}
	sendBlob     = request{http.MethodPut, "/blobs/uploads/", 0}
	sendWheel    = request{http.MethodPut, "/blobs/uploads/", largest}
	seeBlob      = request{http.MethodHead, "/blobs/", 0}
	sendTag      = request{http.MethodPut, "/manifests/tiny-1.0", 0}
	readTag      = request{http.MethodGet, "/manifests/tiny-1.0", 0}
	sendKey      = request{http.MethodPut, "/manifests/key-", 0}
	readManifest = request{http.MethodGet, "/manifests/sha256:", 0}
	sendManifest = request{http.MethodPut, "/manifests/sha256:", 0}
)

func registryFaults() []fault {
	const unreachable = "check the connection from this host to HOST, and try again; uploaded files are not sent twice"
	return []fault{
		{
			"no server at the address", func(s *scene) {
				s.front.kill()
				s.whenMended(func() { s.check(s.front.start()) })
			},
			diag.Publish, `oci://127.*/wheels: dial tcp 127.*: connection refused`,
			strings.TrimSuffix(unreachable, "; uploaded files are not sent twice"), nothing,
		},
		{
			"the server stops in the middle of a push", func(s *scene) { s.dies(sendWheel) },
			diag.Publish, `pushing tiny-1.0-py3-none-any.whl to oci://127.*/wheels: dial tcp 127.*: connection refused`,
			unreachable, nothing,
		},
		{
			"the server stops and starts again", func(s *scene) { s.restarts(sendWheel) },
			diag.OK, `^$`, "", whole,
		},
		{
			"the server stops between two tags", func(s *scene) { s.dies(sendKey) },
			diag.Publish, `tagging sha256:[0-9a-f]{64} as "key-[0-9a-f]{64}" in oci://127.*/wheels: .*refused`,
			unreachable, partly,
		},
		{
			"401: the password is wrong", func(s *scene) { s.breaks(anyRequest, always, says(401, "WWW-Authenticate", `Basic realm="x"`)) },
			diag.Publish, `oci://127.*/wheels: the registry answered 401 Unauthorized`,
			"HOST accepts no credentials of docker's configuration: run docker login HOST", nothing,
		},
		{
			"403: the user may not write", func(s *scene) { s.breaks(startBlob, always, says(403)) },
			diag.Publish, `pushing .* to oci://127.*/wheels: the registry answered 403 Forbidden`,
			"your login at HOST lacks this permission: ask the owner of the repository", nothing,
		},
		{
			"404: there is no such repository", func(s *scene) { s.breaks(startBlob, always, says(404)) },
			diag.Publish, `pushing .* to oci://127.*/wheels: the registry answered 404 Not Found`,
			"HOST does not create repositories on push: create this one first, or correct its name", nothing,
		},
		{
			"405: writes are forbidden", func(s *scene) { s.breaks(sendManifest, always, says(405)) },
			diag.Publish, `pushing the manifest to oci://127.*/wheels: the registry answered 405 Method Not Allowed`,
			"HOST does not allow this operation: ask its owner", nothing,
		},
		{
			"409: the registry refuses a tag", func(s *scene) { s.breaks(sendTag, always, says(409)) },
			diag.Publish, `tagging sha256:[0-9a-f]{64} as "tiny-1.0" in oci://127.*/wheels: the registry answered 409 Conflict`,
			"another publisher writes the same tag, or it must not be replaced: push again, or publish to another repository", nothing,
		},
		{
			"413: a file is too large", func(s *scene) { s.breaks(sendWheel, always, says(413)) },
			diag.Publish, `pushing tiny-1.0-py3-none-any.whl to oci://127.*/wheels: the registry answered 413 Request Entity Too Large`,
			"a file is larger than the limit of HOST or of a proxy before it: ask its owner to raise it", nothing,
		},
		{
			"429 with Retry-After", func(s *scene) { s.breaks(sendBlob, 1, says(429, "Retry-After", "1")) },
			diag.OK, `^$`, "", whole,
		},
		{
			"429 every time", func(s *scene) { s.breaks(sendBlob, always, says(429, "Retry-After", "0")) },
			diag.Publish, `pushing .* to oci://127.*/wheels: the registry answered 429 Too Many Requests`,
			"wait and try again; uploaded files are not sent twice", nothing,
		},
		{
			"500 once", func(s *scene) { s.breaks(sendManifest, 1, says(500)) },
			diag.OK, `^$`, "", whole,
		},
		{
			"500 every time", func(s *scene) { s.breaks(sendManifest, always, says(500)) },
			diag.Publish, `pushing the manifest to oci://127.*/wheels: the registry answered 500 Internal Server Error`,
			"the registry has a fault: try again later; uploaded files are not sent twice", nothing,
		},
		{
			"the registry reports another digest after the push", func(s *scene) {
				s.breaks(sendManifest, always, says(201, "Docker-Content-Digest", "sha256:"+strings.Repeat("0", 64)))
			},
			diag.Publish, `pushing the manifest to oci://127.*/wheels: the registry returned wrong content`,
			"the registry, or a proxy before it, changes bytes: ask its owner", nothing,
		},
		{
			"the registry has another manifest after the push", func(s *scene) { s.breaks(readManifest, always, s.rewritten) },
			diag.Publish, `tagging sha256:[0-9a-f]{64} as "tiny-1.0" in oci://127.*/wheels: the registry returned wrong content`,
			"the registry, or a proxy before it, changes bytes: ask its owner", nothing,
		},
		{
			"the registry accepts a file and loses it", func(s *scene) { s.breaks(sendWheel, 1, says(201)) },
			diag.Publish, `pushing tiny-1.0-py3-none-any.whl to oci://127.*/wheels: the registry accepted the file and lost it`,
			"the registry, or a proxy before it, loses uploads: ask its owner", nothing,
		},
		{
			"an answer is cut", func(s *scene) { s.breaks(readManifest, 1, s.cuts) },
			diag.OK, `^$`, "", whole,
		},
		{
			"every answer is cut", func(s *scene) { s.breaks(readManifest, always, s.cuts) },
			diag.Publish, `tagging sha256:[0-9a-f]{64} as "tiny-1.0" in oci://127.*/wheels: unexpected EOF`,
			unreachable, nothing,
		},
		{
			"a redirect of a push to another host", func(s *scene) { s.redirects(startBlob, false, s.unexpectedly) },
			diag.Publish, `pushing .* to oci://127.*/wheels: the registry's redirect was refused: an upload goes to no other host`,
			"an upload does not follow a redirect to another host: if that host is right, name it", nothing,
		},
		{
			"a redirect of a file to another host", func(s *scene) { s.redirects(sendBlob, false, s.unexpectedly) },
			diag.Publish, `pushing .* to oci://127.*/wheels: the registry answered 307 Temporary Redirect`,
			"an upload does not follow a redirect to another host: if that host is right, name it", nothing,
		},
		{
			"a redirect of a read to another host", func(s *scene) { s.redirects(readTag, true, s.front.back.ServeHTTP) },
			diag.OK, `^$`, "", whole,
		},
		{
			"a service for tokens without TLS", func(s *scene) {
				s.trustTLS()
				realm := s.stranger(s.unexpectedly)
				s.breaks(anyRequest, always, says(401, "WWW-Authenticate", `Bearer realm="`+realm+`/token",service="x"`))
			},
			diag.Publish, `oci://example.com:5000/wheels: the registry names an unsafe token service for the password`,
			"ask the owner of the registry for a token service with TLS and outside private networks", nothing,
		},
		{
			"plain HTTP to another host", func(s *scene) {
				s.proxy(s.front.addr)
				s.to = "oci://" + elsewhere + "/wheels"
				s.whenMended(func() { s.flags = append(s.flags, "--insecure") })
			},
			diag.Publish, `oci://example.com:5000/wheels: .*server gave HTTP response to HTTPS client`,
			"HOST uses plain HTTP: put TLS before it, or add --insecure to publish", nothing,
		},
		{
			"an untrusted certificate", func(s *scene) {
				s.proxy(s.overTLS())
				s.to = "oci://" + elsewhere + "/wheels"
			},
			diag.Publish, `oci://example.com:5000/wheels: tls: failed to verify certificate: x509: certificate signed by unknown authority`,
			"this host does not trust the certificate of HOST: set SSL_CERT_FILE to the file with its authority", nothing,
		},
		{
			"the wheel changes while it is published", func(s *scene) { s.changes(seeBlob) },
			diag.Publish, `pushing tiny-1.0-py3-none-any.whl to oci://127.*/wheels: the file changed since it was measured`,
			"stop all writers of the file, and push again", nothing,
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
			"the same bytes are published at once", func(s *scene) { s.meets(startBlob, s.made.cell) },
			diag.OK, `^$`, "", whole,
		},
		{
			"other bytes are published at once", func(s *scene) { s.meets(sendTag, s.made.other) },
			diag.Publish, `tagging sha256:[0-9a-f]{64} as "tiny-1.0" in oci://127.*/wheels: the tag tiny-1.0 names sha256:[0-9a-f]{64}, not sha256:[0-9a-f]{64}`,
			"builder never moves this tag: publish to another repository, or under another name; if the cell has another key because its lock was renewed, give its recipe a new version, or remove the published one with the registry's own tool", whole,
		},
	}
}

// trustTLS moves the registry to another host with a trusted certificate.
func (s *scene) trustTLS() {
	s.proxy(s.overTLS())
	s.mend()
	s.to = "oci://" + elsewhere + "/wheels"
}

// rewritten is a server or proxy with reformatted manifests.
func (s *scene) rewritten(w http.ResponseWriter, req *http.Request) {
	answer := httptest.NewRecorder()
	s.front.back.ServeHTTP(answer, req)
	var own bytes.Buffer
	if err := json.Indent(&own, answer.Body.Bytes(), "", "  "); err != nil {
		s.Error(err)
	}
	header := answer.Header()
	header.Set("Content-Length", strconv.Itoa(own.Len()))
	header.Set("Docker-Content-Digest", "sha256:"+sumOf(own.Bytes()))
	repeat(w, header, answer.Code, own.Bytes())
}

// lookIntoRegistry pulls the package of a tag like a client. All files and referrers
// must exist.
func (s *scene) lookIntoRegistry(address string) remains {
	s.Helper()
	r, err := oci.OpenRepository(address, oci.Options{})
	s.check(err)
	tags, err := r.Tags(s.Context())
	if _, missing := errors.AsType[*oci.NotFound](err); missing || err == nil && len(tags) == 0 {
		return nothing
	}
	s.check(err)
	meant := map[string]bool{}
	for _, tag := range tags {
		digest, err := r.Resolve(s.Context(), tag)
		if err != nil {
			s.Errorf("the tag %s: %v", tag, err)
		}
		meant[digest] = true
	}
	if len(meant) != 1 {
		s.Fatalf("the tags %v stand for %v", tags, meant)
	}
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
	if len(about) != len(said) {
		s.Errorf("%d documents speak of it, want %d", len(about), len(said))
	}
	for _, a := range about {
		if a.Fault != nil {
			s.Error(a.Fault)
		}
		m.Files = append(m.Files, a.Files...)
	}
	dir := s.TempDir()
	for _, f := range m.Files {
		if err := r.Fetch(s.Context(), f, dir, nil); err != nil {
			s.Errorf("%s cannot be read: %v", f.Name, err)
		}
	}
	if !slices.ContainsFunc(m.Files, func(f oci.File) bool { return s.sums()[f.SHA256] }) {
		s.Errorf("there is no wheel in %v", m.Files)
	}
}
