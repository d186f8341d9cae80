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
	"builder/test/kit/uploadtest"
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
	const unreachable = "check that this host can reach the server, and run the same command again: it does not send a file twice"
	const again = "run the same command again: it does not send a file twice"
	const to = `uploading ` + name + ` to http://127.*/: `
	return []fault{
		{
			"no server at the address", func(s *scene) {
				s.front.kill()
				s.whenMended(func() { s.check(s.front.start()) })
			},
			diag.Publish, to + `.*connection refused`, unreachable, nothing,
		},
		{
			"the server stops in the middle of an upload", func(s *scene) { s.dies(send) },
			diag.Publish, to + `.*connection refused`, unreachable, nothing,
		},
		{
			"the server stops and starts again", func(s *scene) { s.restarts(send) },
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
			diag.Publish, to + `.*the server answered 401 Unauthorized`,
			"the server refuses the credentials from BUILDER_PUBLISH_TOKEN: correct them there", nothing,
		},
		{
			"403: the user may not upload", func(s *scene) { s.breaks(send, always, says(403)) },
			diag.Publish, to + `the server answered 403 Forbidden`,
			"the credentials from BUILDER_PUBLISH_TOKEN are wrong, or lack the right to upload there", nothing,
		},
		{
			"404: the address accepts no uploads", func(s *scene) { s.breaks(send, always, says(404)) },
			diag.Publish, to + `the server answered 404 Not Found`,
			"check the address, it accepts no uploads: a slash at its end may be missing or wrong", nothing,
		},
		{
			"405: uploads are forbidden", func(s *scene) { s.breaks(send, always, says(405)) },
			diag.Publish, to + `the server answered 405 Method Not Allowed`,
			"check the address, it accepts no uploads: a slash at its end may be missing or wrong", nothing,
		},
		{
			"409: the name belongs to an unknown file", func(s *scene) { s.breaks(send, always, says(409)) },
			diag.Publish, to + `the server answered 409 Conflict`,
			"add the address of its index with ?simple=URL, so that builder can compare the files", nothing,
		},
		{
			"413: the wheel is too large", func(s *scene) { s.breaks(send, always, says(413)) },
			diag.Publish, to + `the server answered 413 Request Entity Too Large`,
			"the server, or a proxy before it, accepts less than N bytes: raise its limit", nothing,
		},
		{
			"429 with Retry-After", func(s *scene) { s.breaks(send, 1, says(429, "Retry-After", "1")) },
			diag.OK, `^$`, "", whole,
		},
		{
			"429 every time", func(s *scene) { s.breaks(send, always, says(429, "Retry-After", "0")) },
			diag.Publish, to + `the server answered 429 Too Many Requests`,
			again, nothing,
		},
		{
			"500 once", func(s *scene) { s.breaks(send, 1, says(500)) },
			diag.OK, `^$`, "", whole,
		},
		{
			"500 every time", func(s *scene) { s.breaks(send, always, says(500)) },
			diag.Publish, to + `the server answered 500 Internal Server Error`,
			again, nothing,
		},
		{
			"the index shows another digest after the upload", func(s *scene) { s.showsOther() },
			diag.Publish, to + `the server accepted the file, but its index shows another: .*sha256 0{64}, ours has [0-9a-f]{64}`,
			"give the new file another version or build tag, or find the origin of the published file; builder never replaces it", whole,
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
			diag.Publish, to + `the server answered 307 Temporary Redirect.*, and redirects to http://127`,
			"builder does not follow redirects of uploads; if the new address is right, publish to it", nothing,
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
			"write https://, or allow http with --insecure in a trusted network", nothing,
		},
		{
			"an untrusted certificate", func(s *scene) { s.to = "pypi:https://" + s.overTLS() + "/" },
			diag.Publish, `uploading ` + name + ` to https://127.*/: .*tls: failed to verify certificate: x509: certificate signed by unknown authority`,
			"set SSL_CERT_FILE to a file with the server's certificate authority; builder checks every certificate, and --insecure only allows http", nothing,
		},
		{
			"the wheel changes while it is published", func(s *scene) { s.changes(see) },
			diag.Publish, to + `the wheel has changed`,
			"build or verify the wheel again: another program wrote to the file", nothing,
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
			"give the new file another version or build tag, or find the origin of the published file; builder never replaces it", whole,
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
