package run_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/build/run"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/plan/lock"
	"builder/internal/view/report"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// with returns an entry with the given inputs.
func with(id string, inputs ...lock.Entry) lock.Entry {
	e := entry(id)
	for _, in := range inputs {
		e.Inputs = append(e.Inputs, lock.Input{Recipe: "r", ID: in.ID, Key: in.Key()})
	}
	return e
}

func take(t *testing.T, f *fake, jobs int, entries ...lock.Entry) []run.Outcome {
	t.Helper()
	r := runner(f, t.TempDir())
	r.Jobs = jobs
	return r.Run(t.Context(), entries)
}

var passed = []verdict.Verdict{{Gate: "wheel-format", Status: verdict.Pass}}

func TestInputsComeFirst(t *testing.T) {
	library := entry("library")
	tests := with("tests", library)
	user := with("user", tests, library)
	f := &fake{known: map[string]run.Result{
		"library": {Artifacts: []artifact.Artifact{{Name: "library.whl"}, {Name: "library.txz"}}, Verdicts: passed},
		"tests":   {Artifacts: []artifact.Artifact{{Name: "tests.whl"}}, Verdicts: passed},
	}}
	got := take(t, f, 4, user, tests, library)
	check.That(t, got[0].Entry.ID == "user" && got[2].Entry.ID == "library", "the outcomes are in another order than the entries")
	check.Same(t, "the build was given", []string{"user tests.whl", "user library.whl"}, f.inputs)
}

func TestAnInputWithoutAResult(t *testing.T) {
	broken, absent := entry("broken"), entry("absent")
	got := take(t, &fake{}, 2, broken, with("user", broken), with("other", absent))
	for i, says := range map[int]string{1: "its input broken has no result", 2: "its input absent is not part of the run"} {
		o := got[i]
		check.That(t, o.Skipped && o.Err != nil && strings.Contains(o.Err.Error(), says), "%s: %v", o.Entry.ID, o.Err)
	}
}

// An entry with a known result runs again without its inputs.
func TestAKnownResultNeedsNoInputs(t *testing.T) {
	f := &fake{known: map[string]run.Result{"tests": {Artifacts: []artifact.Artifact{{Name: "tests.whl"}}, Verdicts: passed}}}
	o := take(t, f, 1, with("tests", entry("library")))[0]
	check.That(t, o.Err == nil && !o.Skipped && o.From == report.Store, "%+v", o)
}

// Files that an earlier run built from now missing inputs are removed.
func TestAnInputWithoutAResultLeavesNothing(t *testing.T) {
	out := t.TempDir()
	old := filepath.Join(out, "user", "old.whl")
	must.Succeed(t, os.MkdirAll(filepath.Dir(old), 0o755), os.WriteFile(old, nil, 0o600))
	listMade(t, out, "user", "old.whl")
	f := &fake{}
	got := runner(f, out).Run(t.Context(), []lock.Entry{with("user", entry("absent"))})
	_, err := os.Stat(old)
	check.That(t, got[0].Skipped && os.IsNotExist(err), "%+v, %v", got[0], err)
}

func TestACircleEnds(t *testing.T) {
	a := entry("a")
	b := with("b", a)
	a.Inputs = []lock.Input{{ID: "b", Key: b.Key()}}
	b.Inputs[0].Key = a.Key() // a real cycle of keys is impossible; here the entries merely wait for each other
	for _, o := range take(t, &fake{}, 2, a, b) {
		check.That(t, o.Err != nil, "%s was built", o.Entry.ID)
	}
}
