package run_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"builder/internal/artifact"
	"builder/internal/diag"
	"builder/internal/gate"
	"builder/internal/lock"
	"builder/internal/run"
)

// with returns an entry that the others go into.
func with(id string, inputs ...lock.Entry) lock.Entry {
	e := entry(id)
	for _, in := range inputs {
		e.Inputs = append(e.Inputs, lock.Input{Recipe: "r", ID: in.ID, Key: in.Key()})
	}
	return e
}

func take(t *testing.T, f *fake, memory int64, jobs int, entries ...lock.Entry) []run.Outcome {
	t.Helper()
	return run.Runner{
		Fetcher: f, Engine: f, Finder: f, Sealer: f, Out: t.TempDir(), Jobs: jobs, Memory: memory, Watch: watch,
		Done: func(int, run.Outcome) {},
	}.Run(t.Context(), entries)
}

var passed = []gate.Verdict{{Gate: "wheel-format", Status: gate.Pass}}

func TestInputsComeFirst(t *testing.T) {
	library := entry("library")
	tests := with("tests", library)
	user := with("user", tests, library)
	f := &fake{known: map[string]run.Result{
		"library": {Artifacts: []artifact.Artifact{{Name: "library.whl"}, {Name: "library.txz"}}, Verdicts: passed},
		"tests":   {Artifacts: []artifact.Artifact{{Name: "tests.whl"}}, Verdicts: passed},
	}}
	got := take(t, f, 0, 4, user, tests, library)
	if got[0].Entry.ID != "user" || got[2].Entry.ID != "library" {
		t.Errorf("the outcomes are in another order than the entries")
	}
	if want := []string{"user tests.whl", "user library.whl"}; !slices.Equal(f.inputs, want) {
		t.Errorf("the build was given %q, want %q", f.inputs, want)
	}
}

func TestAnInputWithoutAResult(t *testing.T) {
	broken, absent := entry("broken"), entry("absent")
	got := take(t, &fake{}, 0, 2, broken, with("user", broken), with("other", absent))
	for i, says := range map[int]string{1: "its input broken has no result", 2: "its input absent is not part of the run"} {
		if o := got[i]; !o.Skipped || o.Err == nil || !strings.Contains(o.Err.Error(), says) {
			t.Errorf("%s: %v", o.Entry.ID, o.Err)
		}
	}
}

func TestACircleEnds(t *testing.T) {
	a := entry("a")
	b := with("b", a)
	a.Inputs = []lock.Input{{ID: "b", Key: b.Key()}}
	b.Inputs[0].Key = a.Key() // the keys of a circle cannot be made; these are near enough to wait for each other
	for _, o := range take(t, &fake{}, 0, 2, a, b) {
		if o.Err == nil {
			t.Errorf("%s was built", o.Entry.ID)
		}
	}
}

func TestMemoryIsShared(t *testing.T) {
	var entries []lock.Entry
	for _, id := range []string{"a", "b", "c", "d"} {
		e := entry(id)
		e.Memory = 16e9
		entries = append(entries, e)
	}
	for memory, most := range map[int64]int64{40e9: 32e9, 16e9: 16e9, 0: 64e9} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{}
			waited := 0
			for _, o := range take(t, f, memory, 4, entries...) {
				if first := o.Steps[0]; first.Name == run.Memory && first.Seconds > 0 {
					waited++
				}
			}
			if want := 4 - int(most/16e9); waited != want {
				t.Errorf("with %d bytes: %d cells say that they waited, want %d", memory, waited, want)
			}
			if len(f.built) != 4 || f.most != most {
				t.Errorf("with %d bytes: %d cells took up to %d bytes together, want %d", memory, len(f.built), f.most, most)
			}
		})
	}
}

func TestWhatDoesNotFitIsNotBegun(t *testing.T) {
	e := entry("huge")
	e.Memory = 32e9
	f := &fake{}
	got := take(t, f, 24e9, 1, e)
	if code := diag.CodeOf(got[0].Err); code != diag.NoEngine || len(f.built) > 0 {
		t.Errorf("class %v, built %v", code, f.built)
	}
	if says := got[0].Err.Error(); !strings.Contains(says, "the build takes 32.0 GB of memory, there are 24.0 GB") {
		t.Errorf("it says %q", says)
	}
}
