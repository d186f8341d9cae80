package publish

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
	"builder/internal/publishing/upload"
)

// treeBundle returns a bundle as Load would return it for an archive of a source tree.
func treeBundle(t *testing.T) Bundle {
	t.Helper()
	const name = "gpt-sovits-20240821v2+rocm6.1.tar.gz"
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := artifact.Of(path, "")
	if err != nil {
		t.Fatal(err)
	}
	b := Bundle{
		Wheel: a, Verdicts: []verdict.Verdict{{Gate: "changes", Status: verdict.Pass}},
		Entry: lock.Entry{ID: "gpt-sovits-20240821v2+rocm6.1", Recipe: "gpt-sovits", Axes: map[string]string{"rocm": "6.1"}, Expect: recipe.Expect{Tree: name, Version: "20240821v2+rocm6.1"}},
	}
	if err := os.Mkdir(attest.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(attest.Dir(path), "sbom.spdx.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Said = said(t, a)
	if err := b.readMetadata(); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTrees(t *testing.T) {
	client := &Client{
		Run:  nil, // no Python client checks an archive
		Take: taken,
	}
	for name, place := range catalogues(t) {
		t.Run(name, func(t *testing.T) {
			put(t, place, bundle(t, "1.0"), "candidate")
			b := treeBundle(t)
			r, err := Publish(t.Context(), place, b, "candidate", client)
			if err != nil || !slices.Equal(r.Checked, []string{"pull and verify"}) || strings.HasSuffix(r.Where, "/simple/") {
				t.Fatalf("%+v, %v", r, err)
			}
			if r := put(t, place, b, "stable"); !r.Existed {
				t.Error("it was not there the second time")
			}
			found, err := FindCell(t.Context(), place, b.Entry.ID)
			if err != nil || found.Project != "gpt-sovits" || found.Version != "20240821v2+rocm6.1" || found.Filename != b.Wheel.Name || found.SHA256 != b.Wheel.SHA256 {
				t.Errorf("%+v, %v", found, err)
			}
			path, err := place.Bring(t.Context(), b.Entry.Key(), filepath.Join(t.TempDir(), "taken"), anything)
			if err != nil || filepath.Base(path) != b.Wheel.Name {
				t.Fatalf("%s, %v", path, err)
			}
			if said, err := os.ReadDir(attest.Dir(path)); err != nil || len(said) != 1 {
				t.Errorf("came with it: %v, %v", said, err)
			}
			if err := place.Withdraw(t.Context(), b.Entry.Key()); err != nil {
				t.Fatal(err)
			}
			if all := list(t, place); len(all) != 1 || all[0].Project != "tool" {
				t.Errorf("left: %+v", all)
			}
		})
	}
}

// pip would treat an archive in an index as a source distribution.
func TestTreesAreInNoPythonIndex(t *testing.T) {
	dir := t.TempDir()
	place, err := openDirectory("file:" + dir)
	if err != nil {
		t.Fatal(err)
	}
	b := treeBundle(t)
	r := put(t, place, b, "candidate")
	if want := "file://" + filepath.Join(dir, "files", "gpt-sovits", b.Wheel.Name); r.Where != want {
		t.Errorf("it is at %s, want %s", r.Where, want)
	}
	for name, is := range map[string]bool{
		"simple/gpt-sovits":                                 false,
		"files/gpt-sovits/" + b.Wheel.Name:                  true,
		"files/gpt-sovits/" + b.Wheel.Name + ".metadata":    false,
		"files/gpt-sovits/" + b.Wheel.Name + ".record.json": true,
	} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != is {
			t.Errorf("%s: %v, and it is to be there: %v", name, err, is)
		}
	}
	for name, want := range map[string]string{
		"simple/index.html": "</title>", "index.html": b.Wheel.SHA256 + "  " + b.Wheel.Name + "' | sha256sum --check",
	} {
		page, err := os.ReadFile(filepath.Join(dir, name))
		text := strings.ReplaceAll(strings.ReplaceAll(string(page), "&#43;", "+"), "&#39;", "'")
		if err != nil || !strings.Contains(text, want) || strings.Contains(text, "gpt-sovits/\"") || strings.Contains(text, "pip install") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	_, err = Server{Server: &upload.Server{URL: "https://example.com/"}}.Put(t.Context(), b, "candidate")
	if diag.CodeOf(err) != diag.Publish || !strings.Contains(err.Error(), "an upload server accepts only Python packages") {
		t.Errorf("an upload server says %v", err)
	}
}

func TestTreeUnderAnotherName(t *testing.T) {
	b := treeBundle(t)
	b.Entry.Expect.Tree = "another.tar.gz"
	if err := b.readMetadata(); diag.CodeOf(err) != diag.Publish || !strings.Contains(err.Error(), "has the wrong name: its entry promises another.tar.gz") {
		t.Errorf("%v", err)
	}
}
