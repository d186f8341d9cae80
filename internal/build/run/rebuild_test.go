package run_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/view/report"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestRebuild(t *testing.T) {
	dir := t.TempDir()
	good := run.Result{
		Artifacts: []artifact.Artifact{
			{Name: "x.whl", Path: filepath.Join(dir, "x.whl"), SHA256: "aa"},
			{Name: "x.txz", Path: filepath.Join(dir, "x.txz"), SHA256: "cc"},
		},
		Verdicts: []verdict.Verdict{{Gate: "g", Status: verdict.Pass}},
	}
	for name, c := range map[string]struct {
		code diag.Code
		says string
	}{
		"good":    {diag.OK, "2 files are equal in a second build"},
		"differs": {diag.Gate, "x.whl has sha256 aa, and bb in the second build"},
		"less":    {diag.Gate, "the second build made no x.txz"},
		"more":    {diag.Gate, "only the second build made x.log"},
		"nothing": {diag.Gate, "the second build made no x.whl; the second build made no x.txz"},
		"breaks":  {diag.Build, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, a := range good.Artifacts {
				must.Succeed(t, os.WriteFile(a.Path, nil, 0o600))
			}
			f := &fake{known: map[string]run.Result{name: good, "good": good}}
			o := rebuild(t, f, name)
			code := diag.CodeOf(o.Err)
			must.Hold(t, code == c.code, "class %v, want %v: %v", code, c.code, o.Err)
			check.That(t, slices.Equal(f.rebuilt, []string{name}) && len(f.built) == 0, "built %v, rebuilt %v", f.built, f.rebuilt)
			check.Same(t, "kept", (c.code == diag.OK), slices.Contains(f.kept, name))
			check.Same(t, "forgotten", (c.code == diag.Gate), slices.Contains(f.forgotten, name))
			sealed := slices.Contains(f.sealed, name+" 1")
			check.That(t, sealed == (c.code == diag.OK), "sealed %v", f.sealed)
			if c.says == "" {
				return
			}
			last := o.Verdicts[len(o.Verdicts)-1]
			check.That(t, last.Gate == "reproducible" && strings.Contains(last.Evidence, c.says) && (last.Remedy == "") == (last.Status == verdict.Pass),
				"%+v", last)
			check.Same(t, "the last step", "again build", o.Steps[len(o.Steps)-1].Name)
		})
	}
}

func rebuild(t *testing.T, f *fake, id string) run.Outcome {
	t.Helper()
	r := runner(f, t.TempDir())
	r.Rebuild = true
	return r.Run(t.Context(), entries(id))[0]
}

func TestWhatWasComparedIsNotBuiltAThirdTime(t *testing.T) {
	f := &fake{known: map[string]run.Result{"x": {
		Artifacts: []artifact.Artifact{{Name: "x.whl", SHA256: "aa"}},
		Verdicts:  []verdict.Verdict{{Gate: "reproducible", Status: verdict.Pass}},
	}}}
	o := rebuild(t, f, "x")
	check.That(t, o.Err == nil && o.From == report.Store && len(f.rebuilt) == 0, "%v, from %v, rebuilt %v", o.Err, o.From, f.rebuilt)
}

// The steps of a known result count as cached. Those of its second build ran now.
func TestStepsOfAResultAreCached(t *testing.T) {
	f := &fake{known: map[string]run.Result{
		"known": {Steps: []report.Step{{Name: "build"}}, Verdicts: passed},
		"good":  {},
	}}
	o := rebuild(t, f, "known")
	cached := map[string]bool{}
	for _, s := range o.Steps {
		cached[s.Name] = s.Cached
	}
	check.Same(t, "cached", map[string]bool{"build": true, "again fetch": false, "again build": false}, cached)
	check.That(t, !f.known["known"].Steps[0].Cached, "what the finder holds was changed")
}
