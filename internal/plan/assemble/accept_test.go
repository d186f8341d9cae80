package assemble_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/gates/gate"
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
	cat := must.Get(catalogue.Load(site, catalogue.Names{Gates: gate.Promises()}))(t)
	r := must.Get(recipe.Find(cat.Recipes, name))(t)
	drafts := must.Get(assemble.Choose(cat, r, axes))(t)
	return must.Get((&assemble.Assembler{Locks: cat.Locks("")}).Entries(t.Context(), r, axes, drafts))(t)
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
	moved := must.Get(lock.Decode("nccl.lock.json", []byte(nccl)))(t)
	for i := range moved.Sources {
		moved.Sources[i].SHA256 = strings.Repeat("a", 64)
	}
	dir := t.TempDir()
	must.Get(lock.Write(filepath.Join(dir, "moved.json"), moved))(t)
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

// A recipe that builder does not have is code of the site.
func TestUnacceptedRecipe(t *testing.T) {
	ours := []lock.Entry{{Recipe: "ours", ID: "ours-1"}}
	wants(t, ours, nil, "ours-1 (recipe ours)")
	wants(t, ours, []string{"ours"}, "")
}

// Builder's own data has no lock of a user. A relative path would find one in the working
// directory.
func TestBuiltInLockIsThatOfBuilder(t *testing.T) {
	moved := `{"schema": 1, "recipe": "nccl"}`
	dir := t.TempDir()
	must.Succeed(t, os.Mkdir(filepath.Join(dir, "locks"), 0o700), os.WriteFile(filepath.Join(dir, "locks", "nccl.lock.json"), []byte(moved), 0o600))
	t.Chdir(dir)
	own, err := builtIn(t).Locks("").Own("nccl")
	check.That(t, err == nil && own.None(), "got %v, %v", own, err)
}
