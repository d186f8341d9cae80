package main

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"builder/internal/base/diag"
	"builder/internal/publishing/upload/uploadtest"
)

func (s *scene) openServer() {
	kept := &uploadtest.Server{}
	s.front = s.serve(kept)
	s.to = "pypi:http://" + s.front.addr + "/"
	s.look = func() remains {
		data, there := kept.File(filepath.Base(s.wheel()))
		switch {
		case !there:
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

func serverFaults() []fault {
	const name = "tiny-1.0-py3-none-any.whl"
	const unreachable = "see whether the server can be reached from this host, and give the same command again: what has arrived is not sent twice"
	const again = "the same command may be given again: what has arrived is not sent twice"
	const to = `uploading ` + name + ` to http://127.*/: `
	return []fault{
		{
			"nobody listens", func(s *scene) {
				s.front.kill()
				s.whenMended(func() { s.check(s.front.start()) })
			},
			diag.Publish, to + `.*connection refused`, unreachable, nothing,
		},
		{
			"the server dies in the middle of an upload", func(s *scene) { s.dies(send) },
			diag.Publish, to + `.*connection refused`, unreachable, nothing,
		},
		{
			"the server dies, and is back", func(s *scene) { s.restarts(send) },
			diag.OK, `^$`, "", whole,
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
			"401: the password is wrong", func(s *scene) { s.breaks(anyRequest, always, says(401)) },
			diag.Publish, to + `.*the server says 401 Unauthorized`,
			"the server does not take the credentials from BUILDER_PUBLISH_TOKEN: correct them there", nothing,
		},
		{
			"403: the user may not upload", func(s *scene) { s.breaks(send, always, says(403)) },
			diag.Publish, to + `the server says 403 Forbidden`,
			"the credentials from BUILDER_PUBLISH_TOKEN are wrong, or lack the right to upload there", nothing,
		},
		{
			"404: nothing takes uploads there", func(s *scene) { s.breaks(send, always, says(404)) },
			diag.Publish, to + `the server says 404 Not Found`,
			"nothing takes uploads at this address; a slash at its end may be missing or too much", nothing,
		},
		{
			"405: nothing may be uploaded", func(s *scene) { s.breaks(send, always, says(405)) },
			diag.Publish, to + `the server says 405 Method Not Allowed`,
			"nothing takes uploads at this address; a slash at its end may be missing or too much", nothing,
		},
		{
			"409: the name is taken, by what cannot be seen", func(s *scene) { s.breaks(send, always, says(409)) },
			diag.Publish, to + `the server says 409 Conflict`,
			"whether it has the same file cannot be seen: name its index with ?simple=URL", nothing,
		},
		{
			"413: the wheel is too large", func(s *scene) { s.breaks(send, always, says(413)) },
			diag.Publish, to + `the server says 413 Request Entity Too Large`,
			"the server, or a proxy before it, has a limit below N bytes: have it raised", nothing,
		},
		{
			"429 with Retry-After", func(s *scene) { s.breaks(send, 1, says(429, "Retry-After", "1")) },
			diag.OK, `^$`, "", whole,
		},
		{
			"429 for ever", func(s *scene) { s.breaks(send, always, says(429, "Retry-After", "0")) },
			diag.Publish, to + `the server says 429 Too Many Requests`,
			again, nothing,
		},
		{
			"500 once", func(s *scene) { s.breaks(send, 1, says(500)) },
			diag.OK, `^$`, "", whole,
		},
		{
			"500 for ever", func(s *scene) { s.breaks(send, always, says(500)) },
			diag.Publish, to + `the server says 500 Internal Server Error`,
			again, nothing,
		},
		{
			"another digest is shown after the upload", func(s *scene) { s.showsOther() },
			diag.Publish, to + `the server took the file and then shows another: .*sha256 0{64}, ours has [0-9a-f]{64}`,
			"what is published stays as it is: give the new file another version or build tag, or find out who made the other", whole,
		},
		{
			"an answer of the index is cut", func(s *scene) { s.breaks(see, 1, cutPage) },
			diag.OK, `^$`, "", whole,
		},
		{
			"every answer of the index is cut", func(s *scene) { s.breaks(see, always, cutPage) },
			diag.Publish, to + `.*unexpected EOF`,
			again, nothing,
		},
		{
			"a redirect of the upload to another host", func(s *scene) { s.redirects(send, false, s.unexpectedly) },
			diag.Publish, to + `the server says 307 Temporary Redirect.*, and sends on to http://127`,
			"uploads are not sent on; if that is the right address, name it", nothing,
		},
		{
			"a redirect of the index to another host", func(s *scene) { s.redirects(see, false, s.unexpectedly) },
			diag.OK, `^$`, "", whole,
		},
		{
			"plain HTTP to another host", func(s *scene) {
				to := s.to
				s.to = "pypi:http://example.com/"
				s.whenMended(func() { s.to = to })
			},
			diag.Usage, `--to: "http://example.com/" is not encrypted`,
			"write https://; where the network is trusted, --insecure allows http", nothing,
		},
		{
			"a certificate that is not trusted", func(s *scene) { s.to = "pypi:https://" + s.overTLS() + "/" },
			diag.Publish, `uploading ` + name + ` to https://127.*/: .*tls: failed to verify certificate: x509: certificate signed by unknown authority`,
			"SSL_CERT_FILE names the certificates that are trusted; an insecure server is one of http, and no certificate goes unchecked", nothing,
		},
		{
			"the wheel changes while it is published", func(s *scene) { s.changes(see) },
			diag.Publish, to + `the wheel is not what was measured`,
			"something wrote to the file since it was built: build or verify it again", nothing,
		},
		{
			"an interruption", func(s *scene) { s.sends(send, syscall.SIGINT) },
			diag.Interrupted, `interrupt`, "", nothing,
		},
		{
			"builder is killed", func(s *scene) { s.sends(send, syscall.SIGKILL) },
			killed, ``, "", nothing,
		},
		{
			"the same bytes are published at once", func(s *scene) { s.meets(send, s.made.cell) },
			diag.OK, `^$`, "", whole,
		},
		{
			"other bytes are published at once", func(s *scene) { s.meets(send, s.made.other) },
			diag.Publish, to + `the server has another file named "` + name + `": sha256 [0-9a-f]{64}, ours has [0-9a-f]{64}`,
			"what is published stays as it is: give the new file another version or build tag, or find out who made the other", whole,
		},
	}
}

// cutPage is an index with truncated pages.
func cutPage(w http.ResponseWriter, _ *http.Request) {
	cut(w, http.Header{"Content-Type": {"application/vnd.pypi.simple.v1+json"}}, []byte(`{"meta":{"api-version":"1.1"},"files":[`))
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
