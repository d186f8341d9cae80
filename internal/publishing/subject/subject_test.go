package subject

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/files/artifact"
	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/input/pypi"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/test/kit/sourcetreetest"
)

// The gate changes also runs on a finished archive if the store has the source. A
// damaged source counts as missing.
func TestTheSourceOfASubject(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	source := filepath.Join(dir, "tool-1.tar")
	made := filepath.Join(dir, "cell", "tool-1+gloo.tar")
	e := lock.Entry{Schema: lock.Schema, ID: "cell", Expect: recipe.Expect{Tree: filepath.Base(made)}, Patches: []patch.Patch{
		{Name: "gloo", Edits: []patch.Edit{{Kind: patch.Replace, File: "train.py", Search: "nccl", Replace: "gloo", Count: 1}}},
	}}
	if err := sourcetreetest.Write(source, map[string]string{"tool-1/train.py": "backend = 'nccl'\n", "tool-1/LICENSE": "MIT\n"}); err != nil {
		t.Fatal(err)
	}
	kept, err := store.Open(filepath.Join(home, "store"))
	if err != nil {
		t.Fatal(err)
	}
	blob, err := kept.Import(source)
	if err != nil {
		t.Fatal(err)
	}
	e.Source = lock.SourcePin{File: pypi.File{Project: "tool", Version: "1", Filename: "tool-1.tar", Size: blob.Size, SHA256: blob.SHA256}}
	if err := lock.WriteEntry(filepath.Dir(made), e); err != nil {
		t.Fatal(err)
	}
	ask := func(train string) verdict.Verdict {
		t.Helper()
		if err := sourcetreetest.Write(made, map[string]string{"tool-1+gloo/train.py": train, "tool-1+gloo/LICENSE": "MIT\n"}); err != nil {
			t.Fatal(err)
		}
		found, err := Find([]string{filepath.Dir(made)}, "")
		if err != nil || len(found) != 1 {
			t.Fatalf("%+v, %v", found, err)
		}
		s := gate.Subject{Artifact: found[0].Artifact.Path, Expect: found[0].Expect, Source: found[0].Source(home)}
		return gate.Wanted(s.Expect, gate.Container)[0].Check(t.Context(), s)
	}
	if v := ask("backend = 'gloo'\n"); v.Status != verdict.Pass {
		t.Errorf("patched: %+v", v)
	}
	if v := ask("backend = 'nccl'\n"); v.Status != verdict.Fail {
		t.Errorf("not patched: %+v", v)
	}
	path, _ := kept.Path(blob)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, blob.Size), 0o600); err != nil {
		t.Fatal(err)
	}
	if v := ask("backend = 'gloo'\n"); v.Status != verdict.NotMeasured {
		t.Errorf("with a damaged source: %+v", v)
	}
}

// The directory of refused wheels names them. Without wheels it is an error, as the
// directory of a cell is.
func TestTheDirectoryOfRefusedWheels(t *testing.T) {
	cell := t.TempDir()
	rejected := filepath.Join(cell, artifact.RejectedDir)
	if err := os.Mkdir(rejected, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := wheelsOf(rejected); diag.CodeOf(err) != diag.Usage {
		t.Errorf("without an entry: %v", err)
	}
	if err := lock.WriteEntry(cell, lock.Entry{Schema: lock.Schema, ID: "cell"}); err != nil {
		t.Fatal(err)
	}
	if _, err := wheelsOf(rejected); diag.CodeOf(err) != diag.Usage {
		t.Errorf("without a wheel: %v", err)
	}
	wheel := filepath.Join(rejected, "x-1-py3-none-any.whl")
	if err := os.WriteFile(wheel, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if found, err := wheelsOf(rejected); err != nil || !slices.Equal(found, []string{wheel}) {
		t.Errorf("%q, %v", found, err)
	}
}
