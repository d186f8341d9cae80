package app_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"builder/internal/app/build"
	"builder/internal/app/host"
	"builder/internal/app/judge"
	"builder/internal/app/plan"
	"builder/internal/app/release"
	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/input/store"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/proven"
	"builder/internal/plan/recipe"
	"builder/internal/view/progress"
	"builder/internal/view/report"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/sbomtest"
	"builder/test/kit/sourcetreetest"
	"builder/test/kit/wheeltest"
)

// builds is an engine. It writes a wheel with one package and counts its builds.
type builds struct {
	holds string // the package
	text  string // its content; "" for the usual one
	n     int
}

func (b *builds) Build(ctx context.Context, job run.Job, events run.Events, look run.Look) error {
	e := job.Entry
	if !job.Again {
		b.n++
	}
	fmt.Fprintln(events.StepStarted("build"), "make")
	path := filepath.Join(job.Dir, "tiny-1.0-py3-none-any.whl")
	if err := errors.Join(os.MkdirAll(job.Dir, 0o755), b.wheel(path, e)); err != nil {
		return err
	}
	events.StepDone("build", time.Second, false, nil)
	a, err := artifact.Of(path, e.Key())
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "source-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	tree := filepath.Join(scratch, "tiny.tar")
	if err := sourcetreetest.Write(tree, map[string]string{"tiny-1.0/" + b.module(): b.code()}); err != nil {
		return err
	}
	return look(ctx, run.Built{Artifacts: []artifact.Artifact{a}, Source: tree, Canary: `{"network":false}`, Engine: "here"})
}

func (b *builds) module() string { return b.holds + "/__init__.py" }
func (b *builds) code() string   { return cmp.Or(b.text, "name = 'tiny'\n") }

// wheel writes a wheel with its SBOM inside.
func (b *builds) wheel(path string, e lock.Entry) error {
	return sbomtest.Write(path, e, wheeltest.File{Name: b.module(), Text: b.code()})
}

// source is the content of both the tarball and the one wheel of the site.
const source = "content"

// newSession returns a session with a new home and a selection of one cell. The store
// contains the source files of the site's cells.
func newSession(t *testing.T, b run.Engine) (*build.Setup, plan.Selection) {
	t.Helper()
	sum := sha256.Sum256([]byte(source))
	archive := must.Get(txtar.ParseFile(filepath.Join("testdata", "site.txtar")))(t)
	dir := t.TempDir()
	for _, f := range archive.Files {
		data := bytes.ReplaceAll(f.Data, []byte("SHA256"), []byte(hex.EncodeToString(sum[:])))
		if filepath.Base(f.Name) == "tiny.lock.json" {
			var pins lock.File
			must.Succeed(t, json.Unmarshal(data, &pins))
			data = pins.Encode()
		}
		path := filepath.Join(dir, f.Name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644))
	}
	cat := must.Get(catalogue.Load(filepath.Join(dir, "site"), catalogue.Names{Gates: gate.Promises()}))(t)
	tiny := must.Get(recipe.Find(cat.Recipes, "tiny"))(t)
	shown := progress.New(io.Discard, progress.Options{})
	t.Cleanup(shown.Close)
	s := &build.Setup{Display: shown}
	s.Builder, s.Version, s.Catalogue = b, "1.2.3", cat
	s.Sources = plan.Sources{Locked: true, Offline: true}
	s.Keys = signing.Keys{Home: filepath.Join(dir, "home"), Offline: true, Note: t.Logf}
	s.Engines = host.Engines{Choice: host.Choice{Jobs: 1}, Daemon: host.FindDaemon(t.Context())}
	kept, err := store.Open(filepath.Join(s.Keys.Home, "store"))
	if err == nil {
		_, err = kept.Receive(store.Blob{Name: "source", SHA256: hex.EncodeToString(sum[:]), Size: int64(len(source))}, strings.NewReader(source))
	}
	must.Succeed(t, err)
	return s, plan.Selection{Recipe: tiny, Filter: matrix.Filter{}}
}

// releaseOf returns the part of a session for publishing.
func releaseOf(s *build.Setup) release.Setup {
	return release.Setup{Keys: s.Keys, Display: s.Display}
}

// sealerOf returns the sealer of a session.
func sealerOf(t *testing.T, s *build.Setup) run.Sealer {
	t.Helper()
	trust, err1 := s.Keys.Trusted()
	key, err2 := s.Keys.Signing()
	must.Succeed(t, err1, err2)
	return run.NewSealer(key, trust, s.Engines.Describe(), s.Version)
}

// outOf runs a selection and returns the new directory it wrote.
func outOf(t *testing.T, s *build.Setup, of plan.Selection) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	must.Get(build.Run(t.Context(), *s, build.RunRequest{Selection: of, Accept: []string{"all"}, Out: out}))(t)
	return out
}

// A run builds, judges, signs and writes run.json. The next run finds the result.
func TestRun(t *testing.T) {
	engine := &builds{holds: "tiny"}
	s, of := newSession(t, engine)
	out := filepath.Join(t.TempDir(), "out")
	done := must.Get(build.Run(t.Context(), *s, build.RunRequest{Selection: of, Accept: []string{"all"}, Out: out}))(t)
	cell := done.Cells[0]
	if len(done.Cells) != 1 || cell.ID != "tiny-1.0" || report.StatusOf(cell) != report.Pass || cell.From != report.Build || len(cell.Verdicts) == 0 || done.Builder != "1.2.3" {
		t.Errorf("%+v", done)
	}
	key := must.Get(s.Keys.Signing())(t)
	check.Same(t, "signers", []string{key.Public().ID}, cell.Signers)
	check.Same(t, "not asked", []string{"a second build: builder verify " + cell.Artifacts[0].Path + " --rebuild --attach"}, cell.NotAsked)
	read, err := report.Read(filepath.Join(out, "run.json"))
	returned, err1 := json.MarshalIndent(done.Cells, "", "  ") // written times are rounded
	written, err2 := json.MarshalIndent(read.Cells, "", "  ")
	if diff := gocmp.Diff(string(returned), string(written)); errors.Join(err, err1, err2) != nil || diff != "" {
		t.Errorf("run.json says something else, %v (-returned +written):\n%s", errors.Join(err, err1, err2), diff)
	}
	for _, name := range []string{"report.html", "report.md", "junit.xml", "tiny-1.0/logs/build.log", "tiny-1.0/" + lock.EntryFile} {
		_, err := os.Stat(filepath.Join(out, name))
		check.That(t, err == nil, "%v", err)
	}
	record := filepath.Join(t.TempDir(), proven.Name)
	checked, err := judge.Verify(t.Context(), *s, judge.VerifyRequest{Paths: []string{filepath.Join(out, "tiny-1.0")}, Policy: attest.Candidate, Rebuild: true, Attach: true, Record: record})
	check.That(t, err == nil && len(checked.Artifacts) == 1 && checked.Artifacts[0].Key == cell.Key && attest.Passed(checked.Artifacts[0].Checks),
		"the signed wheel does not verify: %+v, %v", checked, err)
	text, err := os.ReadFile(record)
	check.That(t, err == nil && strings.Contains(string(text), `"rebuilt": true`), "the record lacks the second build: %s, %v", text, err)

	again, err := build.Run(t.Context(), *s, build.RunRequest{Selection: of, Accept: []string{"all"}, Out: out})
	check.That(t, err == nil && again.Cells[0].From == report.Store && engine.n == 1,
		"built %d times, the second time from %q, %v", engine.n, again.Cells[0].From, err)
	plan, err := plan.Explain(t.Context(), s.Setup.Setup, of)
	check.That(t, err == nil && plan.Cells[0].Known && plan.Cells[0].Key == cell.Key,
		"the plan does not know the result: %+v, %v", plan, err)
}

// breaks is an engine whose compiler finds an error.
type breaks struct{}

func (breaks) Build(_ context.Context, _ run.Job, events run.Events, _ run.Look) error {
	fmt.Fprint(events.StepStarted("build"), "gcc -c a.c\na.c:1:10: fatal error: nosuch.h: No such file or directory\n    1 | #include <nosuch.h>\n      |          ^~~~~~~~~~\ncompilation terminated.\n")
	err := diag.Errorf(diag.Build, "exit 1")
	events.StepDone("build", time.Second, false, err)
	return fmt.Errorf("step build: %w", err)
}

// run.json has the first error of the compiler and the command of the shell, as the
// terminal has them.
func TestRunThatDoesNotCompile(t *testing.T) {
	s, of := newSession(t, breaks{})
	out := filepath.Join(t.TempDir(), "out")
	done, err := build.Run(t.Context(), *s, build.RunRequest{Selection: of, Accept: []string{"all"}, Out: out})
	failed := done.Cells[0].Error
	must.Hold(t, diag.CodeOf(err) == diag.Build && failed != nil, "%+v, %v", done, err)
	check.Same(t, "cause", []string{
		"a.c:1:10: fatal error: nosuch.h: No such file or directory", "1 | #include <nosuch.h>", "|          ^~~~~~~~~~",
	}, failed.Cause)
	check.Same(t, "shell", "builder debug shell tiny-1.0 --out "+out, failed.Shell)
	check.That(t, strings.Contains(failed.Hint, "`"+failed.Shell+"` opens a shell"), "the hint is %q", failed.Hint)
	check.Same(t, "hint of the error", failed.Hint, diag.All(err)[0].Hint)
	check.That(t, diag.All(err)[0].LogPath != "" && diag.All(err)[0].Log[0] == failed.Cause[0], "%+v", diag.All(err)[0])
}

// A build of the same bytes does not end the refusal of another key, also if it asks the
// same gate again.
func TestSealKeepsRefusalsOfOtherKeys(t *testing.T) {
	engine := &builds{holds: "tiny"}
	s, of := newSession(t, engine)
	out := outOf(t, s, of)
	dir := filepath.Join(out, "tiny-1.0")
	e := must.Get(lock.ReadEntry(dir))(t)
	a := must.Get(artifact.Of(filepath.Join(dir, "tiny-1.0-py3-none-any.whl"), e.Key()))(t)
	other := must.Get(signing.NewKey())(t)
	public := filepath.Join(t.TempDir(), "other.pem.pub")
	must.Succeed(t, other.Public().Write(public))
	refusal := []verdict.Verdict{{Gate: "wheel-format", Status: verdict.Fail, Evidence: "seen"}}
	must.Succeed(t, (attest.Sealer{Key: other}).AddRound(a, attest.NewTestResult(refusal, e.Key(), "v1", nil, time.Now())))
	s.Keys.Trust = []string{public}
	sealer := sealerOf(t, s)
	trust := must.Get(s.Keys.Trusted())(t)
	pass := []verdict.Verdict{{Gate: "wheel-format", Status: verdict.Pass}}
	must.Get(sealer.Seal(e, run.Result{Artifacts: []artifact.Artifact{a}, Started: time.Now(), Finished: time.Now()}, pass))(t)
	_, checks := attest.Verify(a, trust, attest.Candidate)
	check.Fails(t, attest.Faults(a.Name, checks), "gate wheel-format: fail: seen")
}

// A cell that is built and gated again, as by --tests, keeps the verdicts that another
// round attached to the same bytes. Its earlier round of the same gates goes.
func TestSealKeepsAttachedVerdicts(t *testing.T) {
	engine := &builds{holds: "tiny"}
	s, of := newSession(t, engine)
	out := outOf(t, s, of)
	dir := filepath.Join(out, "tiny-1.0")
	must.Get(judge.Verify(t.Context(), *s, judge.VerifyRequest{Paths: []string{dir}, Policy: attest.Candidate, Rebuild: true, Attach: true}))(t)
	e := must.Get(lock.ReadEntry(dir))(t)
	sealer := sealerOf(t, s)
	trust := must.Get(s.Keys.Trusted())(t)
	round := []verdict.Verdict{{Gate: "python-source", Status: verdict.Pass, Evidence: "seen"}, {Gate: "wheel-format", Status: verdict.Pass}, {Gate: "upstream-tests", Status: verdict.Pass}}
	for _, text := range []string{"", "name = 'other'\n"} {
		engine.text = text
		path := filepath.Join(dir, "tiny-1.0-py3-none-any.whl")
		must.Succeed(t, engine.wheel(path, e))
		a := must.Get(artifact.Of(path, e.Key()))(t)
		must.Get(sealer.Seal(e, run.Result{Artifacts: []artifact.Artifact{a}, Started: time.Now(), Finished: time.Now()}, round))(t)
		said, err := attest.Read(a, trust)
		check.That(t, err == nil, "%v", err)
		var gates []string
		for _, r := range said.Counted() {
			for _, v := range r.Verdicts {
				gates = append(gates, v.Gate)
			}
		}
		want := "python-source reproducible upstream-tests wheel-format"
		if text != "" {
			want = "python-source upstream-tests wheel-format" // the attached verdict is about other bytes
		}
		slices.Sort(gates)
		check.Same(t, fmt.Sprintf("with the text %q", text), want, strings.Join(gates, " "))
	}
}
