package app_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"builder/internal/app/judge"
	"builder/internal/app/release"
	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/inspect"
	"builder/internal/publishing/publish"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/ocitest"
)

// Another host judges a published cell by its digest, and a third sees its verdicts.
func TestGateByDigest(t *testing.T) {
	for name, referrers := range map[string]bool{"referrers": true, "no referrers": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place, stop := ocitest.Serve(referrers)
			defer stop()
			builds, of := newSession(t, &builds{holds: "tiny"})
			out := outOf(t, builds, of)
			done, err := release.Publish(t.Context(), releaseOf(builds), release.Request{Paths: []string{filepath.Join(out, "tiny-1.0")}, To: place, Channel: attest.Candidate})
			must.Succeed(t, err)
			address := done.Published[0].Where

			judges, _ := newSession(t, nil)
			judges.Keys.Key = filepath.Join(t.TempDir(), "gpu.pem")
			must.Succeed(t, signing.NewKeyFile(judges.Keys.Key))
			refused := func(says string, r judge.GateRequest) {
				t.Helper()
				report, err := judge.Judge(t.Context(), *judges, r)
				check.That(t, err != nil && strings.Contains(err.Error(), says), "want %q, got %+v, %v", says, report, err)
			}
			refused("an untrusted key signed it", judge.GateRequest{Paths: []string{address}})
			judges.Keys.Trust = []string{signing.PublicOf(filepath.Join(builds.Keys.Home, "key.pem"))}
			refused("needs a digest", judge.GateRequest{Paths: []string{place}})
			refused("not in the registry", judge.GateRequest{Paths: []string{place + "@sha256:" + strings.Repeat("0", 64)}})

			report, err := judge.Judge(t.Context(), *judges, judge.GateRequest{Paths: []string{address}, Attach: true})
			must.Hold(t, err == nil && len(report.Artifacts) == 1 && report.Artifacts[0].SHA256 == done.Published[0].SHA256,
				"%+v, %v", report, err)
			take := func(trusted ...string) (publish.Bundle, error) {
				t.Helper()
				sees, _ := newSession(t, nil)
				sees.Keys.Trust = trusted
				trust := must.Get(sees.Keys.Trusted())(t)
				at := must.Get(publish.Open[publish.Catalogue](place, publish.Options{}))(t)
				return publish.Take(t.Context(), at, done.Published[0].Key, t.TempDir(), trust, attest.Candidate)
			}
			both := []string{judges.Keys.Trust[0], signing.PublicOf(judges.Keys.Key)}
			before := len(report.Artifacts[0].Attached) + len(report.Artifacts[0].Verdicts)
			_, err = take(both[0])
			check.That(t, diag.CodeOf(err) == diag.Gate, "without trust in the judge: %v", err)
			b, err := take(both...)
			check.That(t, err == nil && len(b.Said) != 0 && before != 0, "%+v, %v", b, err)

			// A refusal stays until the gate passes again.
			wrong := must.Get(inspect.ParseExpectations([]string{"framework=torch"}))(t)
			refused("framework", judge.GateRequest{Paths: []string{address}, Attach: true, Expect: wrong})
			_, err = take(both...)
			check.That(t, diag.CodeOf(err) == diag.Gate && strings.Contains(err.Error(), "framework"), "after a refusal: %v", err)
		})
	}
}

// A registry that refuses the verdicts costs no measurement: the cell stays with them, and
// can be published later.
func TestGateKeepsRefusedVerdicts(t *testing.T) {
	registry := ocitest.New(true)
	var closed atomic.Bool
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if closed.Load() && r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "read only", http.StatusForbidden)
			return
		}
		registry.ServeHTTP(w, r)
	}))
	defer front.Close()
	place := "oci://" + strings.TrimPrefix(front.URL, "http://") + "/wheels"
	s, of := newSession(t, &builds{holds: "tiny"})
	out := outOf(t, s, of)
	publishAll := func(path string) release.Report {
		return must.Get(release.Publish(t.Context(), releaseOf(s), release.Request{Paths: []string{path}, To: place, Channel: attest.Candidate}))(t)
	}
	address := publishAll(filepath.Join(out, "tiny-1.0")).Published[0].Where
	t.Chdir(t.TempDir())
	closed.Store(true)
	_, err := judge.Judge(t.Context(), *s, judge.GateRequest{Paths: []string{address}, Attach: true})
	must.Hold(t, err != nil && strings.Contains(err.Error(), "403") && strings.Contains(err.Error(), "the cell with the verdicts is kept: gated-"),
		"%v", err)
	kept, err := filepath.Glob("gated-*/*.whl")
	must.Hold(t, err == nil && len(kept) == 1, "%v %v", kept, err)
	closed.Store(false)
	before, err := filepath.Glob(filepath.Join(out, "tiny-1.0", "*.attestations", "verdicts-*"))
	publishAll(kept[0])
	after, err2 := filepath.Glob("gated-*/*.attestations/verdicts-*")
	check.That(t, err == nil && err2 == nil && len(after) == len(before)+1, "%v before, %v after", before, after)
}
