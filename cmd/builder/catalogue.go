package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/images"
	"builder/internal/diag"
	"builder/internal/image"
	"builder/internal/lock"
	"builder/internal/patch"
	"builder/internal/recipe"
	"builder/patches"
	"builder/recipes"
)

// catalogue is everything that the data folders hold, those of the tool with
// those of a site laid over them.
type catalogue struct {
	recipes []*recipe.Recipe
	images  []image.Image
	patches map[string][]patch.Patch
	site    string          // directory given by --recipes, or ""
	owned   map[string]bool // recipes that the site brings itself
}

// loadCatalogue reads the built-in data and, if site is not empty, the folders
// recipes, images and patches below it. What has the same name as something
// built in replaces it.
func loadCatalogue(site string) (catalogue, error) {
	c := catalogue{patches: map[string][]patch.Patch{}, site: site, owned: map[string]bool{}}
	err := c.add(recipes.FS, images.FS, patches.FS, "")
	if site == "" || err != nil {
		return c, err
	}
	if _, err := os.Stat(site); err != nil {
		return c, diag.Errorf(diag.Usage, "--recipes: %w", err)
	}
	sub := func(name string) fs.FS { return os.DirFS(filepath.Join(site, name)) }
	return c, c.add(sub("recipes"), sub("images"), sub("patches"), site)
}

func (c *catalogue) add(recipeFS, imageFS, patchFS fs.FS, site string) error {
	rs, err1 := recipe.Load(recipeFS, filepath.Join(site, "recipes"))
	is, err2 := image.Load(imageFS, filepath.Join(site, "images"))
	for _, r := range rs {
		c.recipes = replace(c.recipes, r, func(x *recipe.Recipe) string { return x.Name })
		c.owned[r.Name] = site != ""
	}
	for _, i := range is {
		c.images = replace(c.images, i, func(x image.Image) string { return x.Name })
	}
	faults := []error{err1, err2}
	for _, distribution := range folders(patchFS) {
		ps, err := patch.Load(patchFS, filepath.Join(site, "patches"), distribution)
		faults = append(faults, err)
		for _, p := range ps {
			c.patches[distribution] = replace(c.patches[distribution], p, func(x patch.Patch) string { return x.Name })
		}
	}
	return errors.Join(faults...)
}

func folders(fsys fs.FS) []string {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil // a site need not have patches
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// replace returns list with item in the place of what has its name, or at the
// end.
func replace[T any](list []T, item T, name func(T) string) []T {
	i := slices.IndexFunc(list, func(x T) bool { return name(x) == name(item) })
	if i < 0 {
		return append(list, item)
	}
	list = slices.Clone(list)
	list[i] = item
	return list
}

func (c catalogue) names() []string {
	var names []string
	for _, r := range c.recipes {
		names = append(names, r.Name)
	}
	return names
}

func (c catalogue) lockInputs() lock.Catalogue {
	return lock.Catalogue{Images: c.images, Patches: c.patches}
}

// lockPath is where a recipe's lock is written: beside the recipe if the site
// brings it, else below the home, because what is built in cannot be written.
func (c catalogue) lockPath(home, name string) string {
	if c.owned[name] {
		return filepath.Join(c.site, "recipes", name+".lock.json")
	}
	return filepath.Join(home, "locks", name+".lock.json")
}

// readLock returns the pins of a recipe: the built-in ones with those of the
// lock path laid over them.
func (c catalogue) readLock(home, name string) (lock.File, error) {
	f := lock.File{Schema: lock.Schema, Recipe: name}
	if !c.owned[name] {
		if data, err := recipes.FS.ReadFile(name + ".lock.json"); err == nil {
			built, err := lock.Decode("recipes/"+name+".lock.json", data)
			if err != nil {
				return f, err
			}
			f = built
		}
	}
	path := c.lockPath(home, name)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	own, err := lock.Decode(path, data)
	if err != nil {
		return f, err
	}
	return f.With(own), nil
}

// siteDir finds the value of --recipes before the flags are parsed: which
// commands and flags there are depends on it.
func siteDir(args []string) string {
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--recipes="); ok {
			return value
		}
		if arg == "--recipes" && i+1 < len(args) {
			return args[i+1]
		}
	}
	return os.Getenv("BUILDER_RECIPES")
}
