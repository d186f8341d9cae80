package app_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/app/build"
	"builder/internal/app/home"
	"builder/internal/app/judge"
	"builder/internal/app/plan"
	"builder/internal/app/release"
	"builder/internal/evidence/attest"
	"builder/internal/files/artifact"
	"builder/internal/publishing/index"
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
		_, err := s.Keys.Signing()
		must.Succeed(t, err)
		trust = append(trust, home.PublicOf(filepath.Join(s.Keys.Home, "key.pem")))
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
	_, err := build.Run(t.Context(), *first, build.RunRequest{Selection: of, Out: out})
	must.Succeed(t, err)
	rebuild := func(s *build.Setup, out string) error {
		r := judge.VerifyRequest{Paths: []string{filepath.Join(out, "tiny-1.0")}, Policy: attest.Candidate, Rebuild: true, Attach: true}
		all, err := judge.Verifiable(s.Keys, r)
		must.Succeed(t, err)
		_, err = judge.Verify(t.Context(), *s, r, all)
		return err
	}
	publishTo := func(place, out string) error {
		_, err := release.Publish(t.Context(), releaseOf(first), release.Request{Paths: []string{filepath.Join(out, "tiny-1.0")}, To: place, Channel: attest.Candidate})
		return err
	}
	place, tampered := "file:"+filepath.Join(dir, "index"), filepath.Join(dir, "tampered")
	must.Succeed(t, os.CopyFS(lied, os.DirFS(out)), rebuild(honest, out), publishTo(place, out))

	const differs = `tiny/__init__.py differs: "name = 'tiny'", "name = 'else'"`
	check.Fails(t, rebuild(liar, lied), differs)
	check.Fails(t, publishTo("file:"+filepath.Join(dir, "never"), lied), "gate reproducible: fail: ", differs)
	said, err := filepath.Glob(filepath.Join(lied, "tiny-1.0", "*.attestations", "verdicts-*"))
	must.Hold(t, err == nil && len(said) == 2, "%v %v", said, err)
	for _, file := range said {
		payload := statementIn(t, file)
		check.That(t, !strings.Contains(payload, dir), "a statement names a directory of its host: %s", payload)
	}
	must.Succeed(t, os.CopyFS(tampered, os.DirFS(filepath.Join(dir, "index"))))
	addStatements(t, tampered, filepath.Join(lied, "tiny-1.0"))
	take := func(from string) (report.Run, error, error) {
		at, err := publish.OpenCatalogue(from, false)
		must.Succeed(t, err)
		trusted, err := taker.Keys.Trusted()
		must.Succeed(t, err)
		_, _, promoted := publish.Promote(t.Context(), at, "tiny-1.0", attest.Stable, trusted)
		done, taken := build.Run(t.Context(), *taker, build.RunRequest{Selection: of, Out: filepath.Join(t.TempDir(), "out"), From: []string{from}, FromOnly: true})
		return done, promoted, taken
	}
	_, promoted, taken := take("file:" + tampered)
	check.Fails(t, promoted, "gate reproducible: fail: ")
	check.Fails(t, taken, "gate reproducible: fail: ")
	done, promoted, taken := take(place)
	must.Succeed(t, promoted, taken)
	check.Same(t, "from", report.Registry, done.Cells[0].From)
}

// addStatements adds the statements in the directory of a cell to the only record of an
// index, as whoever writes to the index can.
func addStatements(t *testing.T, at, cell string) {
	t.Helper()
	records, err := filepath.Glob(filepath.Join(at, "files", "*", "*.record.json"))
	must.Hold(t, err == nil && len(records) == 1, "%v %v", records, err)
	data, err := os.ReadFile(records[0])
	must.Succeed(t, err)
	var r index.Record
	must.Succeed(t, json.Unmarshal(data, &r))
	folder := r.Filename + ".attestations"
	files, err := os.ReadDir(filepath.Join(cell, folder))
	must.Succeed(t, err)
	have := map[string]bool{}
	for _, f := range r.Beside {
		have[filepath.Base(f.Path)] = true
	}
	before := len(r.Beside)
	to := filepath.Join(at, "files", r.Project, folder)
	for _, f := range files {
		if have[f.Name()] {
			continue
		}
		a, err := artifact.Of(filepath.Join(cell, folder, f.Name()), "")
		must.Succeed(t, err)
		must.Succeed(t, os.Link(a.Path, filepath.Join(to, a.Name)))
		r.Beside = append(r.Beside, index.File{Path: folder + "/" + a.Name, SHA256: a.SHA256, Size: a.Size})
	}
	data, err = json.Marshal(r)
	err = errors.Join(err, os.WriteFile(records[0], data, 0o600), os.WriteFile(filepath.Join(at, "keys", r.Key+".json"), data, 0o600))
	must.Hold(t, err == nil && len(r.Beside) != before, "%v %v", err, "nothing was added")
}

// statementIn returns the signed statement in a file.
func statementIn(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	must.Succeed(t, err)
	_, raw, err := opened(data)
	must.Succeed(t, err)
	return string(raw)
}
