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
	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/files/artifact"
	"builder/internal/publishing/index"
	"builder/internal/publishing/publish"
	"builder/internal/view/report"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// The trust file asks for the second builds of two of three homes, each with an engine
// and a key of its own. Too few are refused, a home with other bytes is refused by name
// although two agree, and three that agree are promoted and taken.
func TestSecondBuildsInThreeHomes(t *testing.T) {
	dir := t.TempDir()
	trust := filepath.Join(dir, "trust.yaml")
	openHome := func(b *builds) (*build.Setup, plan.Selection) {
		s, of := newSession(t, b)
		s.Keys.Trust = []string{trust}
		_, err := s.Keys.Signing()
		must.Succeed(t, err)
		return s, of
	}
	first, of := openHome(&builds{holds: "tiny"})
	engines := []*builds{{holds: "tiny"}, {holds: "tiny"}, {holds: "tiny", text: "name = 'else'\n"}}
	text := "keys:\n  - {key: " + home.PublicOf(filepath.Join(first.Keys.Home, "key.pem")) + ", roles: [builder, gates]}\n"
	var homes []*build.Setup
	var ids []string
	for _, b := range engines {
		s, _ := openHome(b)
		homes = append(homes, s)
		text += "  - {key: " + home.PublicOf(filepath.Join(s.Keys.Home, "key.pem")) + ", roles: [rebuilder]}\n"
		k, err := s.Keys.Signing()
		must.Succeed(t, err)
		ids = append(ids, "key "+k.Public().ID)
	}
	text += "rebuilders: {candidate: 0, stable: 2}\n"
	must.Succeed(t, os.WriteFile(trust, []byte(text), 0o600))
	out := filepath.Join(dir, "out")
	_, err := build.Run(t.Context(), *first, build.RunRequest{Selection: of, Out: out})
	must.Succeed(t, err)
	rebuild := func(i int, out string) error {
		t.Helper()
		r := judge.VerifyRequest{Paths: []string{filepath.Join(out, "tiny-1.0")}, Policy: attest.Candidate, Rebuild: true, Attach: true}
		all, err := judge.Verifiable(homes[i].Keys, r)
		must.Succeed(t, err)
		_, err = judge.Verify(t.Context(), *homes[i], r, all)
		return err
	}
	publishTo := func(place, out string) error {
		_, err := release.Publish(t.Context(), releaseOf(first), release.Request{Paths: []string{filepath.Join(out, "tiny-1.0")}, To: place, Channel: attest.Candidate})
		return err
	}
	already := false // the result of the last promotion
	promote := func(place string) error {
		t.Helper()
		at, err := publish.OpenCatalogue(place, false)
		must.Succeed(t, err)
		trust, err := first.Keys.Trusted()
		must.Succeed(t, err)
		_, already, err = publish.Promote(t.Context(), at, "tiny-1.0", attest.Stable, trust)
		return err
	}
	refused := func(what string, err error, parts ...string) {
		t.Helper()
		if diag.CodeOf(err) != diag.Gate {
			t.Errorf("%s: %v", what, err)
			return
		}
		for _, part := range parts {
			check.That(t, strings.Contains(err.Error(), part), "%s: %v\nlacks %q", what, err, part)
		}
	}

	place := "file:" + filepath.Join(dir, "index")
	must.Succeed(t, rebuild(0, out), publishTo(place, out))
	refused("one home", promote(place), "second builds of 1 keys agree ("+ids[0]+"), and the trust file requires 2 for the channel stable")
	must.Succeed(t, rebuild(1, out))

	// The third home attaches its verdict to a copy.
	lied := filepath.Join(dir, "lied")
	lie := "in the build of " + ids[2] + ": tiny-1.0-py3-none-any.whl has sha256 "
	must.Succeed(t, os.CopyFS(lied, os.DirFS(out)))
	refused("other bytes", rebuild(2, lied), `tiny/__init__.py differs: "name = 'tiny'", "name = 'else'"`)
	refused("publishing", publishTo("file:"+filepath.Join(dir, "never"), lied), lie, "tiny/__init__.py differs")
	said, err := filepath.Glob(filepath.Join(lied, "tiny-1.0", "*.attestations", "verdicts-*"))
	for _, file := range said {
		payload := statementIn(t, file)
		check.That(t, !strings.Contains(payload, dir), "a statement names a directory of its host: %s", payload)
	}
	err = errors.Join(err, publishTo(place, out))
	must.Hold(t, err == nil && len(said) == 4, "%v %v", said, err)
	tampered := filepath.Join(dir, "tampered")
	must.Succeed(t, os.CopyFS(tampered, os.DirFS(filepath.Join(dir, "index"))))
	addStatements(t, tampered, filepath.Join(lied, "tiny-1.0"))
	refused("two agree and one lies", promote("file:"+tampered), lie)

	// It builds again, now the right bytes.
	engines[2].text = ""
	err = errors.Join(rebuild(2, out), publishTo(place, out), promote(place))
	must.Hold(t, err == nil && !already, "%v %v", already, err)
	err = promote(place)
	check.That(t, err == nil && already, "promoted again: %v, %v", already, err)
	for from, says := range map[string]string{place: "", "file:" + tampered: lie} {
		taker, of := openHome(&builds{holds: "tiny"})
		done, err := build.Run(t.Context(), *taker, build.RunRequest{Selection: of, Out: filepath.Join(t.TempDir(), "out"), From: []string{from}, FromOnly: true})
		if says != "" {
			if err == nil || !strings.Contains(err.Error(), says) || len(done.Cells) == 1 && report.StatusOf(done.Cells[0]) == report.Pass {
				t.Errorf("taken from %s: %+v, %v", from, done.Cells, err)
			}
		} else if err != nil || done.Cells[0].From != report.Registry {
			t.Errorf("not taken: %+v, %v", done.Cells, err)
		}
	}
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
