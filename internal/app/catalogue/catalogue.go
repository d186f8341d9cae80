// Package catalogue holds what the data folders hold, those of a site laid over
// those of the tool: recipes with the stacks among them, images, patches, profiles,
// diagnoses, and the locks beside them. What a site brings is checked when it is
// read. What is then chosen of it, and what that is made of, is package assemble's.
package catalogue

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"builder/diagnoses"
	"builder/images"
	"builder/internal/base/diag"
	"builder/internal/evidence/proven"
	"builder/internal/plan/diagnose"
	"builder/internal/plan/image"
	"builder/internal/plan/lock"
	"builder/internal/plan/patch"
	"builder/internal/plan/profile"
	"builder/internal/plan/recipe"
	"builder/internal/plan/stack"
	"builder/patches"
	"builder/profiles"
	"builder/recipes"
	"builder/stacks"
)

// A Catalogue is everything that the data folders hold, those of the tool with
// those of a site laid over them.
type Catalogue struct {
	Recipes []*recipe.Recipe // those of stacks too
	Images  []image.Image
	Patches map[string][]patch.Patch
	Site    string // its directory, or ""
	// Profiles reads the run-time environments when they are first asked for. What
	// is there is read also where something has a fault.
	Profiles func() ([]*profile.Profile, error)
	// Proven reads which cells were built and gated when it is first asked for. A cell
	// of the site's file replaces the built-in one.
	Proven func() (proven.Cells, error)

	owned map[string]bool // recipes that the site brings itself
	// bring says of what the site brings whether it is new or replaces something:
	// "patch horovod/findhip" and its like.
	bring map[string]string
}

// Taken are the names that no axis can have, because they are flags: of every
// recipe, and of every profile.
type Taken struct{ Recipe, Profile []string }

// Load reads the data of the tool and, if site is not empty, the folders below it.
// What has the same name as something built in replaces it. What is there is
// returned also where something has a fault.
func Load(site string, taken Taken) (Catalogue, error) {
	c := Catalogue{
		Patches: map[string][]patch.Patch{}, Site: site, owned: map[string]bool{}, bring: map[string]string{},
		Profiles: sync.OnceValues(func() ([]*profile.Profile, error) { return readProfiles(site, taken.Profile) }),
		Proven:   sync.OnceValues(func() (proven.Cells, error) { return readProven(site) }),
	}
	err := c.add(recipes.FS, images.FS, patches.FS, "")
	built, err2 := stack.Load(stacks.FS, "stacks")
	if err = errors.Join(err, err2); err != nil {
		return c, err
	}
	if site == "" {
		return c, c.addStacks(built, nil)
	}
	data, err := openSite(site)
	if err != nil {
		return c, err
	}
	if err = c.add(data.folder("recipes"), data.folder("images"), data.folder("patches"), site); err == nil {
		err = errors.Join(c.checkPatches(), c.checkInputs(), c.checkWaivers(), c.checkAdvisories()) // a recipe with a fault would be missed
	}
	own, err2 := stack.Load(data.folder("stacks"), filepath.Join(site, "stacks"))
	err = errors.Join(err, err2, c.checkAxes(taken.Recipe))
	if err == nil {
		err = c.addStacks(built, own)
	}
	return c, err
}

// readProven reads the built-in file and that of a site over it.
func readProven(site string) (proven.Cells, error) {
	cells, err := proven.Read(recipes.FS)
	if err != nil || site == "" {
		return cells, err
	}
	data, err := openSite(site)
	if err != nil {
		return nil, err
	}
	own, err := proven.Read(data.folder("recipes"))
	maps.Copy(cells, own)
	return cells, err
}

// add lays the recipes, images and patches of a place over those that are there.
func (c *Catalogue) add(recipeFS, imageFS, patchFS fs.FS, site string) error {
	rs, err1 := recipe.Load(recipeFS, filepath.Join(site, "recipes"))
	is, err2 := image.Load(imageFS, filepath.Join(site, "images"))
	var there bool
	for _, r := range rs {
		c.Recipes, there = replace(c.Recipes, r, func(x *recipe.Recipe) string { return x.Name })
		c.note(site, "recipe "+r.Name, there)
		c.owned[r.Name] = site != ""
	}
	for _, i := range is {
		c.Images, there = replace(c.Images, i, func(x image.Image) string { return x.Name })
		c.note(site, "image "+i.Name, there)
	}
	distributions, err3 := folders(patchFS)
	faults := []error{err1, err2, err3}
	for _, distribution := range distributions {
		ps, err := patch.Load(patchFS, filepath.Join(site, "patches"), distribution)
		faults = append(faults, err)
		for _, p := range ps {
			c.Patches[distribution], there = replace(c.Patches[distribution], p, func(x patch.Patch) string { return x.Name })
			c.note(site, "patch "+distribution+"/"+p.Name, there)
		}
	}
	return errors.Join(faults...)
}

// note remembers what a site brings, and whether that was there.
func (c *Catalogue) note(site, what string, there bool) {
	if site == "" {
		return
	}
	c.bring[what] = "of the site"
	if there {
		c.bring[what] = "replaces the built-in one"
	}
}

// addStacks adds stacks as recipes, those of a site laid over the built-in ones,
// when all recipes that they may name are there.
func (c *Catalogue) addStacks(built, own []*stack.Stack) error {
	all := built
	var there bool
	for _, s := range own {
		all, there = replace(all, s, func(x *stack.Stack) string { return x.Name })
		c.note(c.Site, "recipe "+s.FullName(), there)
		c.owned[s.FullName()] = true
	}
	var faults []error
	known := stack.Catalogue{Recipes: c.Recipes, Profile: c.environment}
	for _, s := range all {
		r, err := s.Recipe(known)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		c.Recipes = append(c.Recipes, r)
	}
	return errors.Join(faults...)
}

// environment is the text of the one combination of a profile, as a stack wants it.
func (c *Catalogue) environment(name string, axes map[string]string) (string, error) {
	all, err := c.Profiles()
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(all, func(p *profile.Profile) bool { return p.Name == name })
	if i < 0 {
		return "", diag.Errorf(diag.Usage, "no profile is called %q", name)
	}
	e, err := all[i].Resolve(axes, nil)
	if err != nil {
		return "", err
	}
	text, err := e.Render(profile.Env)
	return string(text), err
}

// Diagnoses reads the known failures, those of the site laid over the built-in
// ones. Only the verbs that look for them pay for that.
func (c Catalogue) Diagnoses() ([]diagnose.Diagnosis, error) {
	all, err := diagnose.Load(diagnoses.FS, "diagnoses")
	if c.Site == "" || err != nil {
		return all, err
	}
	data, err := openSite(c.Site)
	if err != nil {
		return nil, err
	}
	own, err := diagnose.Load(data.folder("diagnoses"), filepath.Join(c.Site, "diagnoses"))
	for _, d := range own {
		all, _ = replace(all, d, func(x diagnose.Diagnosis) string { return x.Name })
	}
	return all, err
}

// readProfiles reads the run-time environments, those of the site laid over the
// built-in ones.
func readProfiles(site string, taken []string) ([]*profile.Profile, error) {
	all, err := profile.Load(profiles.FS, "profiles")
	if site == "" || err != nil {
		return all, err
	}
	data, err := openSite(site)
	if err != nil {
		return all, err
	}
	own, err := profile.Load(data.folder("profiles"), filepath.Join(site, "profiles"))
	for _, p := range own {
		if fault := checkProfile(p, taken); fault != nil {
			err = errors.Join(err, fault)
			continue
		}
		all, _ = replace(all, p, func(x *profile.Profile) string { return x.Name })
	}
	return all, err
}

// OfSite says what of a cell the site brings, and whether it is new.
func (c Catalogue) OfSite(d lock.Draft) []string {
	names := []string{"recipe " + d.Cell.Recipe.Name, "image " + d.Image.Name}
	if d.Runtime.Name != d.Image.Name {
		names = append(names, "image "+d.Runtime.Name)
	}
	for _, choice := range d.Patches {
		names = append(names, "patch "+d.Cell.Recipe.Name+"/"+choice.Patch.Name)
	}
	brought := []string{}
	for _, name := range names {
		if how, ok := c.bring[name]; ok {
			brought = append(brought, name+" "+how)
		}
	}
	return brought
}

// Names are those of all recipes.
func (c Catalogue) Names() []string {
	var names []string
	for _, r := range c.Recipes {
		names = append(names, r.Name)
	}
	return names
}

// Locks are those of the recipes, on the host that keeps its state in home.
func (c Catalogue) Locks(home string) Locks { return Locks{c, home} }

// LockInputs is what the draft of a cell is made from.
func (c Catalogue) LockInputs() lock.Catalogue {
	return lock.Catalogue{Images: c.Images, Patches: c.Patches}
}

// folders are those of fsys, which need not be there, and links to others of them.
func folders(fsys fs.FS) (names []string, err error) {
	entries, err := fs.ReadDir(fsys, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	faults := []error{err}
	for _, e := range entries {
		folder := e.IsDir()
		if e.Type() == fs.ModeSymlink {
			info, err := fs.Stat(fsys, e.Name())
			folder, faults = err == nil && info.IsDir(), append(faults, asUsage(err))
		}
		if folder {
			names = append(names, e.Name())
		}
	}
	return names, errors.Join(faults...)
}

// replace returns list with item in the place of what has its name, and whether
// there was one; else item stands at the end.
func replace[T any](list []T, item T, name func(T) string) (_ []T, there bool) {
	i := slices.IndexFunc(list, func(x T) bool { return name(x) == name(item) })
	if i < 0 {
		return append(list, item), false
	}
	list = slices.Clone(list)
	list[i] = item
	return list, true
}
