package assemble_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/gates/gate"
	"builder/internal/input/pypi"
	"builder/internal/plan/assemble"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/patches"
	"builder/recipes"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// entriesOf returns the entries of a cell under a site with these files.
func entriesOf(t *testing.T, files map[string]string, name string, axes matrix.Filter) []lock.Entry {
	t.Helper()
	site := t.TempDir()
	must.Succeed(t, os.Mkdir(filepath.Join(site, "recipes"), 0o700))
	for path, text := range files {
		path = filepath.Join(site, path)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
	}
	cat, err := catalogue.Load(site, catalogue.Names{Gates: gate.Promises()})
	must.Succeed(t, err)
	r, err := recipe.Find(cat.Recipes, name)
	must.Succeed(t, err)
	drafts, err := assemble.Choose(cat, r, axes)
	must.Succeed(t, err)
	entries, err := (&assemble.Assembler{Locks: cat.Locks("")}).Entries(t.Context(), r, axes, drafts)
	must.Succeed(t, err)
	return entries
}

// TestUnaccepted gives cells that a site changes in the ways that changed code got into a
// wheel without a word, and cells that it leaves as they are.
func TestUnaccepted(t *testing.T) {
	read := func(data []byte, err error) string {
		must.Succeed(t, err)
		return string(data)
	}
	average := read(patches.FS.ReadFile("nccl/25-one-rank-average.yaml"))
	nccl := read(recipes.FS.ReadFile("nccl.lock.json"))
	moved, err := lock.Decode("nccl.lock.json", []byte(nccl))
	must.Succeed(t, err)
	for i := range moved.Sources {
		moved.Sources[i].SHA256 = strings.Repeat("a", 64)
	}
	dir := t.TempDir()
	_, err = lock.Write(filepath.Join(dir, "moved.json"), moved)
	must.Succeed(t, err)
	movedLock := read(os.ReadFile(filepath.Join(dir, "moved.json")))
	dropped := strings.Replace(average, "\nwhen: ", "\nwhen: {version: \"<1\"} # ", 1)
	must.Hold(t, dropped != average, "the patch has no condition")

	const cell, input = "nccl", "nccl-tests"
	for _, c := range []struct {
		name   string
		files  map[string]string
		recipe string
		accept []string
		want   string
	}{
		{"nothing changed", nil, cell, nil, ""},
		{"a copy of a patch and of the lock", map[string]string{"patches/nccl/25-one-rank-average.yaml": average, "recipes/nccl.lock.json": nccl}, cell, nil, ""},
		{"a patch that no longer applies", map[string]string{"patches/nccl/25-one-rank-average.yaml": dropped}, cell, nil, "patch one-rank-average"},
		{"the same below another cell", map[string]string{"patches/nccl/25-one-rank-average.yaml": dropped}, input, nil, "patch one-rank-average"},
		{"a source moved by the lock", map[string]string{"recipes/nccl.lock.json": movedLock}, cell, nil, "source"},
		{"accepted", map[string]string{"recipes/nccl.lock.json": movedLock}, cell, []string{"nccl"}, ""},
		{"another recipe accepted", map[string]string{"recipes/nccl.lock.json": movedLock}, cell, []string{"rccl"}, "source"},
		{"all accepted", map[string]string{"recipes/nccl.lock.json": movedLock}, cell, []string{"all"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			axes := matrix.Filter{"version": "2.28.9"}
			if c.recipe == input {
				axes = matrix.Filter{"library": "2.28.9"}
			}
			wants(t, entriesOf(t, c.files, c.recipe, axes), c.accept, c.want)
		})
	}
}

// wants checks what the error says of the entries, or that there is none.
func wants(t *testing.T, entries []lock.Entry, accept []string, want string) {
	t.Helper()
	err := assemble.Unaccepted(t.Context(), &assemble.Assembler{Locks: builtIn(t).Locks("")}, entries, accept)
	if want == "" {
		must.Succeed(t, err)
		return
	}
	check.That(t, err != nil && strings.Contains(err.Error(), want), "got %v, want %s", err, want)
}

// TestUnacceptedRecipe gives cells of recipes that builder does not have.
func TestUnacceptedRecipe(t *testing.T) {
	entry := func(project string, e recipe.Expect) lock.Entry {
		return lock.Entry{Recipe: "ours", ID: "ours-1", Source: lock.SourcePin{File: pypi.File{Project: project}}, Expect: e}
	}
	own := []string{"dotprod"}
	for _, c := range []struct {
		name string
		cell lock.Entry
		want string
	}{
		{"a project of its own", entry("dotprod", recipe.Expect{Packages: own}), ""},
		{"an archive of its own", entry("dotprod", recipe.Expect{Tree: "dotprod.tar"}), ""},
		{"the project of a longer word", entry("array-api", recipe.Expect{Packages: own}), ""},
		{"builder's project in other letters", entry("Horovod", recipe.Expect{Packages: own}), "ours-1 (recipe ours)"},
		{"the vendor's name of builder's project", entry("nvidia-nccl-cu13", recipe.Expect{Packages: own}), "recipe ours"},
		{"only the place of a program", entry("dotprod", recipe.Expect{Packages: []string{"scripts/dotprod"}}), "recipe ours"},
		{"builder's library as an extension", entry("dotprod", recipe.Expect{Packages: own, Extensions: []string{"dotprod/lib/libnccl.so.2"}}), "recipe ours"},
		{"an archive of builder's name", entry("dotprod", recipe.Expect{Tree: "horovod-0.28.1.tar.gz"}), "recipe ours"},
		{"a module that Python imports at its start", entry("dotprod", recipe.Expect{Packages: []string{"dotprod", "sitecustomize.py"}}), "recipe ours"},
		{"a foreign project as installed", entry("dotprod", recipe.Expect{Packages: []string{"dotprod", "other-1.egg-info"}}), "recipe ours"},
		{"a framework", entry("dotprod", recipe.Expect{Packages: own, Frameworks: []string{"TensorFlow"}}), "recipe ours"},
		{"builder's package", entry("dotprod", recipe.Expect{Packages: []string{"horovod"}}), "recipe ours"},
		{"builder's module", entry("dotprod", recipe.Expect{Packages: own, Import: []string{"horovod.torch"}}), "recipe ours"},
		{"builder's extension", entry("dotprod", recipe.Expect{Packages: own, Extensions: []string{"horovod/torch/*.so"}}), "recipe ours"},
		{"a library", entry("dotprod", recipe.Expect{Packages: own, Library: "ours/libnccl.so.2"}), "recipe ours"},
		{"no promise of packages", entry("dotprod", recipe.Expect{}), "recipe ours"},
		{"files beside the packages", entry("dotprod", recipe.Expect{Packages: []string{"dotprod", "data/lib"}}), "recipe ours"},
		{"a file that Python runs at its start", entry("dotprod", recipe.Expect{Packages: []string{"dotprod", "dotprod.pth"}}), "recipe ours"},
	} {
		t.Run(c.name, func(t *testing.T) { wants(t, []lock.Entry{c.cell}, nil, c.want) })
	}
}
