package attest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/internal/plan/stack"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// The provenance of a stack covers its manifest and all its files. Each wheel contains
// its own SBOM.
func TestAWheelhouseVerifies(t *testing.T) {
	e := testEntry()
	e.Expect = recipe.Expect{Wheelhouse: &recipe.Wheelhouse{Format: stack.Format}}
	dir := t.TempDir()
	var made []artifact.Artifact
	for _, name := range []string{"manifest.json", stack.Folder + "/a-1-py3-none-any.whl"} {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(name), 0o600))
		a, err := artifact.Of(path, e.Key())
		must.Succeed(t, err)
		a.Name = name
		made = append(made, a)
	}
	s := Sealer{Key: testKey(t)}
	now := built
	must.Succeed(t, s.Seal(made, NewProvenance(e, Build{Started: now, Finished: now})))
	verdicts := []verdict.Verdict{{Gate: "wheelhouse", Status: verdict.Pass, Evidence: "it installs"}}
	must.Succeed(t, s.AddRound(made[0], NewTestResult(verdicts, e.Key(), "test", nil, now)))
	trust := signing.Trust{Keys: []signing.PublicKey{s.Key.Public()}, Now: now}
	if _, checks := Verify(made[0], trust, Candidate); !Passed(checks) {
		t.Errorf("%+v", checks)
	}
	added := filepath.Join(dir, stack.Folder, "b-1-py3-none-any.whl")
	must.Succeed(t, os.WriteFile(added, nil, 0o600))
	if _, checks := Verify(made[0], trust, Candidate); Passed(checks) {
		t.Error("a wheel that nobody signed is in the wheelhouse")
	}
	must.Succeed(t, os.Remove(added), os.WriteFile(made[1].Path, []byte("other"), 0o600))
	_, checks := Verify(made[0], trust, Candidate)
	all := wrong(checks)
	check.That(t, len(all) == 1 && strings.Contains(all[0], "wheelhouse/a-1-py3-none-any.whl has sha256"), "%q", all)
}
