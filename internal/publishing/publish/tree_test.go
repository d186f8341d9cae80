package publish

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/evidence/sbom"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
	"builder/internal/publishing/upload"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// treeBundle returns a bundle as Load would return it for an archive of a source tree.
func treeBundle(t *testing.T) Bundle {
	t.Helper()
	const name = "gpt-sovits-20240821v2+rocm6.1.tar.gz"
	path := must.File(t, name, "archive")
	a := must.Get(artifact.Of(path, ""))(t)
	b := Bundle{
		Wheel: a, Verdicts: []verdict.Verdict{{Gate: "changes", Status: verdict.Pass}},
		Entry: lock.Entry{ID: "gpt-sovits-20240821v2+rocm6.1", Recipe: "gpt-sovits", Axes: map[string]string{"rocm": "6.1"}, Expect: recipe.Expect{Tree: name, Version: "20240821v2+rocm6.1"}},
	}
	b.Said = said(t, a, "", sbom.PredicateType)
	must.Succeed(t, b.readMetadata())
	return b
}

// pip would treat an archive in an index as a source distribution.
func TestTreesAreInNoPythonIndex(t *testing.T) {
	dir := t.TempDir()
	place, err := Open[Directory]("file:"+dir, Options{})
	must.Succeed(t, err)
	b := treeBundle(t)
	r := put(t, place, b, "candidate")
	check.Same(t, "the place", "file://"+filepath.Join(dir, "files", "gpt-sovits", b.Wheel.Name), r.Where)
	for name, is := range map[string]bool{
		"simple/gpt-sovits":                                 false,
		"files/gpt-sovits/" + b.Wheel.Name:                  true,
		"files/gpt-sovits/" + b.Wheel.Name + ".metadata":    false,
		"files/gpt-sovits/" + b.Wheel.Name + ".record.json": true,
	} {
		_, err := os.Stat(filepath.Join(dir, name))
		check.That(t, (err == nil) == is, "%s: %v, and it is to be there: %v", name, err, is)
	}
	for name, want := range map[string]string{
		"simple/index.html": "</title>", "index.html": b.Wheel.SHA256 + "  " + b.Wheel.Name + "' | sha256sum --check",
	} {
		page, err := os.ReadFile(filepath.Join(dir, name))
		text := strings.ReplaceAll(strings.ReplaceAll(string(page), "&#43;", "+"), "&#39;", "'")
		check.That(t, err == nil && strings.Contains(text, want) && !strings.Contains(text, "gpt-sovits/\"") && !strings.Contains(text, "pip install"),
			"%s: %v\n%s", name, err, text)
	}
	_, err = Server{Server: &upload.Server{URL: "https://example.com/"}}.Put(t.Context(), b, "candidate", nil)
	check.That(t, diag.CodeOf(err) == diag.Publish && strings.Contains(err.Error(), "an upload server accepts only Python packages"),
		"an upload server says %v", err)
}

func TestTreeUnderAnotherName(t *testing.T) {
	b := treeBundle(t)
	b.Entry.Expect.Tree = "another.tar.gz"
	if err := b.readMetadata(); diag.CodeOf(err) != diag.Publish || !strings.Contains(err.Error(), "has the wrong name: its entry promises another.tar.gz") {
		t.Errorf("%v", err)
	}
}
