package patches_test

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"regexp"
	"testing"

	"builder/internal/gates/gate"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/patches"
	"builder/recipes"
	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/must"
	"builder/test/kit/recipetest"
)

func TestSchema(t *testing.T) {
	golden.CheckFile(t, "schema.json", recipetest.Schema(&patch.Patch{}))
}

// go:embed lists folders by name and silently leaves out others.
func TestEveryFileIsEmbedded(t *testing.T) {
	for _, name := range files(t) {
		want := must.Get(os.ReadFile(name))(t)
		got, err := fs.ReadFile(patches.FS, name)
		check.That(t, err == nil && bytes.Equal(got, want), "%s: what is embedded is not what is there: %v", name, err)
	}
}

// files lists all files in this folder and below, except Go files.
func files(t *testing.T) []string {
	t.Helper()
	var all []string
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && path.Ext(name) != ".go" {
			all = append(all, name)
		}
		return err
	})
	must.Succeed(t, err)
	return all
}

var numbered = regexp.MustCompile(`^[0-9]{2}-`)

// Every file is a patch of a recipe, a diff of one, or the schema.
func TestEveryFileIsRead(t *testing.T) {
	read := map[string]bool{"schema.json": true}
	all := must.Get(recipe.Load(recipes.FS, "recipes", gate.Promises()))(t)
	for _, r := range all {
		loaded, err := patch.Load(patches.FS, "patches", r.Name)
		check.That(t, err == nil, "%v", err)
		names, err := fs.Glob(patches.FS, r.Name+"/*.yaml")
		check.That(t, err == nil && len(names) == len(loaded), "%d patches from %q, %v", len(loaded), names, err)
		for _, name := range names {
			read[name] = true
			data, err := fs.ReadFile(patches.FS, name)
			check.That(t, err == nil && bytes.HasPrefix(data, []byte("# yaml-language-server: $schema=../schema.json\n")),
				"%s does not tell editors of its schema: %v", name, err)
			check.That(t, numbered.MatchString(path.Base(name)),
				"%s has no number of two digits: files are applied in the order of their names", name)
		}
		for _, p := range loaded {
			for _, e := range p.Edits {
				if e.Diff != "" {
					read[path.Join(r.Name, e.Diff)] = true
				}
			}
		}
	}
	for _, name := range files(t) {
		check.That(t, read[name], "no recipe reads %s", name)
	}
}
