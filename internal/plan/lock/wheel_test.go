package lock_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// wheelPin returns a wheel of the tiny recipe for one Python.
func wheelPin(python, digits string) lock.SourcePin {
	tag := "cp" + strings.ReplaceAll(python, ".", "")
	return lock.SourcePin{Python: python, File: pypi.File{
		Project: "tiny", Version: "1.0", Filename: "tiny-1.0-" + tag + "-" + tag + "-manylinux2014_x86_64.whl", Size: 7, SHA256: sha(digits),
	}}
}

// A release has a wheel for each Python, and a lock pins all of them.
func TestWheelsArePinnedForAPython(t *testing.T) {
	f := lock.File{Schema: lock.Schema, Recipe: "tiny", Sources: []lock.SourcePin{wheelPin("3.11", "a0")}}
	f = f.With(lock.File{Sources: []lock.SourcePin{wheelPin("3.12", "a1")}})
	read, err := lock.Decode("tiny.lock.json", f.Encode())
	must.Hold(t, err == nil && len(read.Sources) == 2, "%+v, %v", read, err)
	all := drafts(t, "kind: sdist", "kind: wheel", `["3.11", "3.12"]`, `["3.12", "3.11"]`, `id: "tiny-`, `id: "wheel-`)
	for _, d := range all {
		check.That(t, d.Source.Kind == recipe.Wheel && d.Source.Python == d.Vars["python"], "%s asks for %+v", d.Cell.ID, d.Source)
	}
	pin, ok := lock.SourceOf(all[0].Cell, all[0].Vars, read.Sources)
	if !ok || !pin.IsWheel() || pin.SHA256 != sha("a1") {
		t.Errorf("%s is made from %+v, %v", all[0].Cell.ID, pin, ok)
	}
	m := lock.File{}.Missing(all[:1])
	check.That(t, strings.HasPrefix(m.String(), "source tiny 1.0 for Python 3.12;"), "missing is %s", m)
}

// A wheel is specific to a Python, so a cell without a Python is an error.
func TestAWheelNeedsAPython(t *testing.T) {
	c := cells(t, "kind: sdist", "kind: wheel", "tiny-{{version}}-{{cp}}", "tiny-{{version}}")[0]
	delete(c.Axes, "python")
	delete(c.Names, "python")
	_, err := lock.NewDraft(c, tinyCatalogue())
	check.That(t, diag.CodeOf(err) == diag.Usage && strings.Contains(err.Error(), "needs a Python"), "got %v", err)
}

// An incomplete behaviour is an error of the cell.
func TestBehaviourOfACell(t *testing.T) {
	const asks = `  behaviour: [{name: x, about: a, run: "echo {{rocm}}", says: {rocm: "{{rocm}}"}, stock: {rocm: "{{version}}"}}]`
	d := drafts(t, "kind: sdist", "kind: wheel", "  packages: [tiny]", "  packages: [tiny]\n"+asks)[0]
	b := d.Settings.Expect.Behaviour[0]
	check.That(t, b.Says["rocm"] == "5.7" && b.Stock["rocm"] == "1.0" && b.Run == "echo {{rocm}}", "got %+v", b)
	_, err := lock.NewDraft(cells(t, "  packages: [tiny]", "  packages: [tiny]\n"+strings.Replace(asks, "about: a, ", "", 1))[0], tinyCatalogue())
	for _, want := range []string{"expect.behaviour x needs about", "expect.behaviour x: stock needs a source of kind wheel"} {
		check.That(t, diag.CodeOf(err) == diag.Usage && strings.Contains(err.Error(), want), "got %v, want %s", err, want)
	}
}

// The index is queried for the release's wheel for the Python of the cell, without
// dependencies.
func TestResolveAWheel(t *testing.T) {
	t.Setenv("UV_NO_INDEX", "true") // else the pip of this host is asked for its index
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "content") }))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	const none = "lock-version = \"1.0\"\n[[packages]]\nname = \"tiny\"\nversion = \"1.0\"\n"
	answer := none + fmt.Sprintf("wheels = [{ url = \"%s/tiny-1.0-cp311-cp311-manylinux2014_x86_64.whl\", hashes = { sha256 = \"%s\" } }]\n", server.URL, sha("1"))
	script := "#!/bin/sh\necho \"$@\" >'" + dir + "/asked'\ncat pyproject.toml >>'" + dir + "/asked'\ncp '" + dir + "/answer' pylock.toml\n"
	for name, text := range map[string]string{"uv": script, "answer": answer} {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	r := resolver(nil)
	r.Scratch, r.UV = t.TempDir(), func(context.Context) (pypi.Tool, error) { return pypi.Tool{Path: filepath.Join(dir, "uv")}, nil }
	question := lock.SourceNeed{Origin: recipe.Origin{Kind: recipe.Wheel}, Project: "tiny", Version: "1.0", Python: "3.11"}
	f, err := r.Resolve(t.Context(), "tiny", lock.Missing{Sources: []lock.SourceNeed{question}})
	want := wheelPin("3.11", "1")
	check.That(t, err == nil && len(f.Sources) == 1 && f.Sources[0] == want, "got %+v, %v", f.Sources, err)
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	for _, want := range []string{"--no-deps", "--python-version 3.11", "--only-binary :all:", `["tiny==1.0"]`} {
		check.That(t, err == nil && strings.Contains(string(asked), want), "%q is not in %s, %v", want, asked, err)
	}
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "answer"), []byte(none), 0o644))
	question.Python = "3.9"
	_, err = r.Resolve(t.Context(), "tiny", lock.Missing{Sources: []lock.SourceNeed{question}})
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), "tiny 1.0 has no wheel for this Python and platform"), "got %v", err)
}

// The tree of upstream's tests has its own pin, and so do their packages. A cell
// without tests has neither.
func TestTestsArePinned(t *testing.T) {
	const tests = "expect:\n  tests: {files: [{file: test/a.py, seconds: 5}]}\n"
	all := drafts(t,
		"from: {kind: sdist}\n", "from: {kind: sdist}\ntests-from: {kind: git, repository: \"https://git.invalid/tiny\", tag: \"v{{version}}\", under: test}\n",
		"  run: [numpy]\n", "  run: [numpy]\n  tests: [pytest]\n", "expect:\n", tests)
	f := tinyLock()
	missing := f.Missing(all)
	check.Same(t, "it lacks", "source tiny-tests 1.0; source tiny-tests 1.1; Python 3.11 with pytest; Python 3.12 with pytest", missing.String())
	whys := missing.Unstated()
	check.That(t, len(whys) == 2, "unstated: %q", whys)
	pinned := source(pin("tiny-tests", "1.0", "e0"))
	pinned.Tag, pinned.Under, pinned.Commit = "v1.0", "test", "0123456789012345678901234567890123456789"
	f.Sources = append(f.Sources, pinned)
	f.Python = append(f.Python, lock.PythonPin{Python: "3.11", Requirements: []string{"pytest"}, Files: slices.Clone(f.Python[0].Files)})
	entries := must.Get(lock.Assemble(all[:1], f, "p"))(t)
	e := entries[0]
	check.That(t, e.Tests.SHA256 == pinned.SHA256 && e.Tests.Repository == "https://git.invalid/tiny" && len(e.TestWheels) == 1 && e.Source.Project == "tiny",
		"%+v, %+v", e.Tests, e.TestWheels)
	other := f
	other.Sources = slices.Clone(f.Sources)
	other.Sources[len(other.Sources)-1].Under = "other"
	check.That(t, !other.Missing(all[:1]).None(), "the pin of another folder is taken")
	folder := drafts(t, "from: {kind: sdist}\n", "from: {kind: git, repository: \"https://git.invalid/all\", tag: \"v{{version}}\", under: projects/tiny}\n")[0].Source
	check.That(t, folder.Root && folder.Under == "projects/tiny" && !e.Tests.Root,
		"the folder is not the root of the source, or that of the tests is: %+v, %+v", folder, e.Tests)
	plain, err := lock.Assemble(drafts(t)[:1], tinyLock(), "p")
	check.That(t, err == nil && plain[0].Tests.SHA256 == "" && plain[0].TestWheels == nil, "%+v, %v", plain, err)
}
