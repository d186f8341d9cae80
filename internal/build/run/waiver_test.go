package run_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
	"builder/internal/view/report"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// waived promises no packages, so that wheel-format alone judges the fake's artifact.
func waived(id, gate string) lock.Entry {
	e := entry(id)
	e.Expect.Packages = nil
	e.Expect.Waivers = []recipe.Waiver{{Gate: gate, Because: "known", Issue: "https://example.org/7", Until: "2026-12-31"}}
	return e
}

func runAt(t *testing.T, f *fake, date, out string, e lock.Entry) run.Outcome {
	t.Helper()
	now := must.Get(time.Parse(time.DateOnly, date))(t)
	r := runner(f, out)
	r.Now = now
	return r.Run(t.Context(), []lock.Entry{e})[0]
}

// The fake's artifact is not a wheel, so wheel-format refuses it.
func TestAWaivedFailureIsKept(t *testing.T) {
	f := &fake{}
	o := runAt(t, f, "2026-12-31", t.TempDir(), waived("refused", "wheel-format"))
	check.That(t, o.Err == nil && len(f.kept) == 1 && o.Verdicts[0].Status == verdict.Waived && o.Verdicts[0].Waiver.Issue == "https://example.org/7",
		"%v, kept %v, %+v", o.Err, f.kept, o.Verdicts)
	o = runAt(t, &fake{}, "2027-01-01", t.TempDir(), waived("refused", "wheel-format"))
	check.That(t, diag.CodeOf(o.Err) == diag.Gate && strings.Contains(o.Err.Error(), "gate wheel-format: fail"), "%v", o.Err)
}

// A result kept under a waiver is refused after the waiver ends, without another build,
// and its files are set aside.
func TestAWaiverEndsInTheStoreToo(t *testing.T) {
	out := t.TempDir()
	path := filepath.Join(out, "x", "x.whl")
	known := run.Result{
		Artifacts: []artifact.Artifact{{Name: "x.whl", Path: path}},
		Verdicts:  []verdict.Verdict{{Gate: "size", Status: verdict.Waived, Evidence: "it is small", Remedy: "look"}},
	}
	f := &fake{known: map[string]run.Result{"x": known}}
	must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("x"), 0o644))
	if o := runAt(t, f, "2026-12-01", out, waived("x", "size")); o.Err != nil || o.From != report.Store {
		t.Errorf("while it holds: %v, from %v", o.Err, o.From)
	}
	o := runAt(t, f, "2027-02-01", out, waived("x", "size"))
	check.That(t, diag.CodeOf(o.Err) == diag.Gate && o.From == report.Store && len(f.built) == 0,
		"after its end: %v, from %v, built %v", o.Err, o.From, f.built)
	check.That(t, len(o.Artifacts) == 1 && filepath.Base(filepath.Dir(o.Artifacts[0].Path)) == artifact.RejectedDir,
		"the file is still taken for a good one: %+v", o.Artifacts)
}
