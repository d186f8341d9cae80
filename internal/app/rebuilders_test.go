package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/app/build"
	"builder/internal/app/judge"
	"builder/internal/app/plan"
	"builder/internal/app/release"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/publishing/publish"
	"builder/internal/view/report"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// A home with other bytes refuses the wheel for everybody who trusts its key, whatever
// others found, and its evidence names the difference and no directory of its host. A home
// with the same bytes lets it become stable.
func TestSecondBuildsInOtherHomes(t *testing.T) {
	dir := t.TempDir()
	var trust []string
	openHome := func(b *builds) (*build.Setup, plan.Selection) {
		s, of := newSession(t, b)
		must.Get(s.Keys.Signing())(t)
		trust = append(trust, signing.PublicOf(filepath.Join(s.Keys.Home, "key.pem")))
		return s, of
	}
	first, of := openHome(&builds{holds: "tiny"})
	honest, _ := openHome(&builds{holds: "tiny"})
	liar, _ := openHome(&builds{holds: "tiny", text: "name = 'else'\n"})
	taker, _ := openHome(&builds{holds: "tiny"})
	for _, s := range []*build.Setup{first, honest, liar, taker} {
		s.Keys.Trust = trust
	}
	out, lied := filepath.Join(dir, "out"), filepath.Join(dir, "lied")
	must.Get(build.Run(t.Context(), *first, build.RunRequest{Selection: of, Accept: []string{"all"}, Out: out}))(t)
	rebuild := func(s *build.Setup, out string) error {
		r := judge.VerifyRequest{Paths: []string{filepath.Join(out, "tiny-1.0")}, Policy: attest.Candidate, Rebuild: true, Attach: true}
		_, err := judge.Verify(t.Context(), *s, r)
		return err
	}
	publishTo := func(place, out string) error {
		_, err := release.Publish(t.Context(), releaseOf(first), release.Request{Paths: []string{filepath.Join(out, "tiny-1.0")}, To: place, Channel: attest.Candidate})
		return err
	}
	place := "file:" + filepath.Join(dir, "index")
	must.Succeed(t, os.CopyFS(lied, os.DirFS(out)), rebuild(honest, out), publishTo(place, out))

	const differs = "tiny/__init__.py"
	check.Fails(t, rebuild(liar, lied), differs)
	check.Fails(t, publishTo("file:"+filepath.Join(dir, "never"), lied), "gate reproducible: fail: ", differs)
	said, err := filepath.Glob(filepath.Join(lied, "tiny-1.0", "*.attestations", "verdicts-*"))
	must.Hold(t, err == nil && len(said) == 2, "%v %v", said, err)
	for _, file := range said {
		payload := statementIn(t, file)
		check.That(t, !strings.Contains(payload, dir), "a statement names a directory of its host: %s", payload)
	}
	at := must.Get(publish.Open[publish.Catalogue](place, publish.Options{}))(t)
	trusted := must.Get(taker.Keys.Trusted())(t)
	_, _, err = publish.Promote(t.Context(), at, "tiny-1.0", attest.Stable, trusted)
	must.Succeed(t, err)
	done, err := build.Run(t.Context(), *taker, build.RunRequest{Selection: of, Accept: []string{"all"}, Out: filepath.Join(t.TempDir(), "out"), From: []string{place}, FromOnly: true})
	must.Succeed(t, err)
	check.Same(t, "from", report.Registry, done.Cells[0].From)
}

// statementIn returns the signed statement in a file.
func statementIn(t *testing.T, file string) string {
	t.Helper()
	data := must.Get(os.ReadFile(file))(t)
	_, raw, err := opened(data)
	must.Succeed(t, err)
	return string(raw)
}
