package recipes_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"builder/images"
	"builder/internal/golden"
	"builder/internal/image"
	"builder/internal/lock"
	"builder/internal/matrix"
	"builder/internal/patch"
	"builder/internal/recipe"
	"builder/patches"
	"builder/recipes"
)

func TestEveryFileIsEmbeddedAndOfAKindThatIsRead(t *testing.T) {
	all := golden.CheckEmbedded(t, recipes.FS)
	for file := range all {
		name, isLock := strings.CutSuffix(file, ".lock.json")
		if isLock && all[name+".yaml"] == nil {
			t.Errorf("%s is the lock of no recipe", file)
		}
		if !isLock && !strings.HasSuffix(file, ".yaml") && file != "schema.json" {
			t.Errorf("%s is neither recipe nor lock nor schema", file)
		}
	}
}

func TestEveryRecipeLoads(t *testing.T) {
	all := load(t)
	files, err := fs.Glob(recipes.FS, "*.yaml")
	if err != nil || len(all) != len(files) || len(all) == 0 {
		t.Errorf("%d recipes from %v, %v", len(all), files, err)
	}
	for _, file := range files {
		data, err := fs.ReadFile(recipes.FS, file)
		if err != nil || !bytes.HasPrefix(data, []byte("# yaml-language-server: $schema=schema.json\n")) {
			t.Errorf("%s does not tell editors of its schema: %v", file, err)
		}
	}
	if data, err := fs.ReadFile(recipes.FS, "schema.json"); err != nil || !bytes.Equal(data, recipe.Schema(&recipe.Recipe{})) {
		t.Errorf("schema.json is not the schema of this tool: go test ./internal/recipe -update (%v)", err)
	}
}

func load(t *testing.T) []*recipe.Recipe {
	t.Helper()
	all, err := recipe.Load(recipes.FS, "recipes")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// catalogue is what the recipes may name.
func catalogue(t *testing.T) lock.Catalogue {
	t.Helper()
	all, err := image.Load(images.FS, "images")
	if err != nil {
		t.Fatal(err)
	}
	c := lock.Catalogue{Images: all, Patches: map[string][]patch.Patch{}}
	folders, err := fs.ReadDir(patches.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		if c.Patches[folder.Name()], err = patch.Load(patches.FS, "patches", folder.Name()); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// drafts are all cells of a recipe with what they are made of: whatever the
// recipe names is there, and every name in double braces has a value.
func drafts(t *testing.T, r *recipe.Recipe, c lock.Catalogue) ([]lock.Draft, []matrix.Exclusion) {
	t.Helper()
	cells, excluded, err := matrix.Expand(r, matrix.Everything(r))
	if err != nil {
		t.Fatal(err)
	}
	var all []lock.Draft
	for _, cell := range cells {
		d, err := lock.NewDraft(cell, c)
		if err != nil {
			t.Error(err)
			continue
		}
		all = append(all, d)
	}
	return all, excluded
}

// What no cell uses has no place in a recipe: it is a slip or a leftover.
func TestNothingInARecipeIsIdle(t *testing.T) {
	c := catalogue(t)
	for _, r := range load(t) {
		t.Run(r.Name, func(t *testing.T) {
			all, excluded := drafts(t, r, c)
			used := func(what string, by func(lock.Draft) bool) {
				if !slices.ContainsFunc(all, by) {
					t.Errorf("no cell of %d has %s", len(all), what)
				}
			}
			for _, axis := range r.Axes {
				for _, value := range axis.Values {
					// A value may be there to say why it cannot be had.
					if slices.ContainsFunc(excluded, func(e matrix.Exclusion) bool { return e.Axes[axis.Name] == value && e.Source != "" }) {
						continue
					}
					used(axis.Name+" "+value, func(d lock.Draft) bool { return d.Cell.Axes[axis.Name] == value })
				}
			}
			for i, v := range r.Variants {
				used(fmt.Sprintf("variant %d, where %s", i, v.When), func(d lock.Draft) bool {
					_, ok, err := v.When.Holds(d.Cell.Axes)
					return ok && err == nil
				})
			}
			for _, rule := range r.Compatible {
				if !slices.ContainsFunc(excluded, func(e matrix.Exclusion) bool { return e.Because == rule.Because }) {
					t.Errorf("nothing is excluded because %s", rule.Because)
				}
			}
			for version := range r.Source.Released {
				if !slices.ContainsFunc(all, func(d lock.Draft) bool { return d.Source.Version == version }) {
					t.Errorf("no cell is of the release %s, which has a date", version)
				}
			}
		})
	}
}

// Every patch acts on some cell, and every image carries some cell.
func TestEveryPatchAndImageIsUsed(t *testing.T) {
	c := catalogue(t)
	usedImages := map[string]bool{}
	for _, r := range load(t) {
		applied := map[string]bool{}
		all, _ := drafts(t, r, c)
		for _, d := range all {
			usedImages[d.Image.Name], usedImages[d.Runtime.Name] = true, true
			for _, p := range d.Chosen() {
				applied[p.Name] = true
			}
		}
		for _, p := range c.Patches[r.Name] {
			if !applied[p.Name] {
				t.Errorf("patch %s of %s applies to no cell", p.Name, r.Name)
			}
		}
		delete(c.Patches, r.Name)
	}
	for distribution := range c.Patches {
		t.Errorf("patches/%s belongs to no recipe", distribution)
	}
	for _, img := range c.Images {
		if !usedImages[img.Name] {
			t.Errorf("no recipe uses the image %s", img.Name)
		}
	}
}

// What an advisory says to mend it is a patch, and mends it where it says.
func TestAdvisories(t *testing.T) {
	c := catalogue(t)
	for _, r := range load(t) {
		for _, a := range r.KnownAdvisories() {
			if !slices.ContainsFunc(c.Patches[r.Name], func(p patch.Patch) bool { return p.Name == a.MendedBy }) {
				t.Errorf("%s: %s is mended by %q, which is no patch", r.Name, a.ID, a.MendedBy)
			}
		}
	}
	r, err := recipe.Find(load(t), "horovod")
	if err != nil {
		t.Fatal(err)
	}
	for hardening, sealed := range map[string]bool{"on": true, "off": false} {
		cells, _, err := matrix.Expand(r, matrix.Filter{"hardening": hardening})
		if err != nil {
			t.Fatal(err)
		}
		d, err := lock.NewDraft(cells[0], c)
		if err != nil {
			t.Fatal(err)
		}
		applied := slices.ContainsFunc(d.Chosen(), func(p patch.Patch) bool { return p.Name == "rendezvous-seal" })
		if applied != sealed || (d.Settings.Expect.Rendezvous == "sealed") != sealed || len(d.Settings.Advisories) != 2 ||
			strings.HasSuffix(d.Cell.ID, ".unhardened") == sealed || strings.HasSuffix(d.Settings.Expect.Version, ".unhardened") == sealed ||
			strings.HasSuffix(d.Settings.Env["HOROVOD_LOCAL_VERSION"], ".unhardened") == sealed {
			t.Errorf("hardening %s: %s, patch applied: %v, %+v", hardening, d.Cell.ID, applied, d.Settings)
		}
	}
}

func TestLocks(t *testing.T) {
	c := catalogue(t)
	for _, r := range load(t) {
		t.Run(r.Name, func(t *testing.T) {
			name := r.Name + ".lock.json"
			data, err := fs.ReadFile(recipes.FS, name)
			if err != nil {
				t.Fatal(err)
			}
			f, err := lock.Decode("recipes/"+name, data)
			if err != nil || f.Recipe != r.Name {
				t.Fatalf("the lock of %q: %v", f.Recipe, err)
			}
			if !bytes.Equal(f.Encode(), data) {
				t.Error("it is not written as the tool writes it: make lock")
			}
			for i, line := range strings.Split(string(data), "\n") {
				if strings.Contains(line, "://") {
					t.Errorf("line %d holds an address: %s", i+1, line)
				}
			}
			all, _ := drafts(t, r, c)
			entries := locked(t, r, c, f, all)
			pinsAreUsed(t, f, entries)
		})
	}
}

// locked returns the entries of all cells that the lock covers. What is built
// where nothing is said about it must be among them.
func locked(t *testing.T, r *recipe.Recipe, c lock.Catalogue, f lock.File, all []lock.Draft) []lock.Entry {
	t.Helper()
	preferred, _, err := matrix.Expand(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := lock.NewDraft(preferred[0], c)
	if err != nil {
		t.Fatal(err)
	}
	if missing := f.Missing([]lock.Draft{d}); !missing.None() {
		t.Errorf("%s lacks %s", preferred[0].ID, missing)
	}
	var entries []lock.Entry
	for _, d := range all {
		if missing := f.Missing([]lock.Draft{d}); !missing.None() {
			t.Logf("%s is resolved when it is asked for: the lock lacks %s", d.Cell.ID, missing)
			continue
		}
		one, err := lock.Assemble([]lock.Draft{d}, f, "pipeline")
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, one...)
	}
	return entries
}

// pinsAreUsed fails for a pin that answers a question nobody asks any more.
func pinsAreUsed(t *testing.T, f lock.File, entries []lock.Entry) {
	t.Helper()
	files, pinned := map[string]bool{}, map[string]bool{}
	for _, e := range entries {
		for _, file := range slices.Concat(e.Image.Wheels, e.Runtime.Wheels) {
			files[file.SHA256] = true
		}
		files[e.Source.SHA256] = true
		pinned[e.Image.Pin.Name], pinned[e.Runtime.Pin.Name] = true, true
	}
	for _, source := range f.Sources {
		if !files[source.SHA256] {
			t.Errorf("no cell is made from %s", source.Filename)
		}
	}
	for _, img := range f.Images {
		if !pinned[img.Name] {
			t.Errorf("no cell uses the pin of image %s", img.Name)
		}
	}
	for _, set := range f.Python {
		for _, file := range set.Files {
			if !files[file.SHA256] {
				t.Errorf("no cell installs %s", file.Filename)
			}
		}
	}
}
