package subject

import (
	"os"
	"path/filepath"
	"testing"

	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/input/pypi"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/sourcetreetest"
)

// The gate changes also runs on a finished archive if the store has the source. A
// damaged source counts as missing.
func TestTheSourceOfASubject(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	source := filepath.Join(dir, "tool-1.tar")
	made := filepath.Join(dir, "cell", "tool-1+gloo.tar")
	e := lock.Entry{Schema: lock.EntrySchema, ID: "cell", Expect: recipe.Expect{Tree: filepath.Base(made)}, Patches: []patch.Patch{
		{Name: "gloo", Edits: []patch.Edit{{Kind: patch.Replace, File: "train.py", Search: "nccl", Replace: "gloo", Count: 1}}},
	}}
	must.Succeed(t, sourcetreetest.Write(source, map[string]string{"tool-1/train.py": "backend = 'nccl'\n", "tool-1/LICENSE": "MIT\n"}))
	kept := must.Get(store.Open(filepath.Join(home, "store")))(t)
	blob := must.Get(kept.Import(source))(t)
	e.Source = lock.SourcePin{File: pypi.File{Project: "tool", Version: "1", Filename: "tool-1.tar", Size: blob.Size, SHA256: blob.SHA256}}
	must.Succeed(t, lock.WriteEntry(filepath.Dir(made), e))
	ask := func(train string) verdict.Verdict {
		t.Helper()
		must.Succeed(t, sourcetreetest.Write(made, map[string]string{"tool-1+gloo/train.py": train, "tool-1+gloo/LICENSE": "MIT\n"}))
		found, err := Find([]string{filepath.Dir(made)}, "")
		must.Hold(t, err == nil && len(found) == 1, "%+v, %v", found, err)
		s := gate.Subject{Artifact: found[0].Artifact.Path, Expect: found[0].Expect, Source: found[0].Source(home)}
		return gate.Wanted(s.Expect, gate.Container)[0].Check(t.Context(), s)
	}
	check.Same(t, "patched", verdict.Pass, ask("backend = 'gloo'\n").Status)
	check.Same(t, "not patched", verdict.Fail, ask("backend = 'nccl'\n").Status)
	path, _ := kept.Path(blob)
	must.Succeed(t, os.Chmod(path, 0o600), os.WriteFile(path, make([]byte, blob.Size), 0o600))
	check.Same(t, "with a damaged source", verdict.NotMeasured, ask("backend = 'gloo'\n").Status)
}
