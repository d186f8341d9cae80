// Package catalogue loads the data folders: recipes, images, patches, profiles,
// diagnoses, and locks. A site's files override the built-in ones of the same
// name and are checked when read. Package assemble turns chosen cells into entries.
package catalogue

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"builder/diagnoses"
	"builder/images"
	"builder/internal/plan/diagnose"
	"builder/internal/plan/image"
	"builder/internal/plan/lock"
	"builder/internal/plan/patch"
	"builder/internal/plan/profile"
	"builder/internal/plan/proven"
	"builder/internal/plan/recipe"
	"builder/patches"
	"builder/profiles"
	"builder/recipes"
)

// A Catalogue is the content of the built-in data folders, with a site's files laid
// over it.
type Catalogue struct {
	Recipes []*recipe.Recipe
	Images  []image.Image
	// CPythons are the builds of CPython that recipes may lay into an image.
	CPythons []image.CPython
	Patches  map[string][]patch.Patch
	Site     string // directory of the site, or ""
	// Profiles reads the run-time environments at the first call. On an error it still
	// returns the valid ones.
	Profiles func() ([]*profile.Profile, error)
	// Proven reads, at the first call, which cells were built and gated. A cell in the
	// site's file replaces the built-in one.
	Proven func() (proven.Cells, error)

	// bring records whether each item of the site is new or replaces a built-in one. A
	// key is, for example, "patch horovod/findhip".
	bring map[string]string
}

// Names are the names of other packages that the files of a site are checked against.
type Names struct {
	Recipe, Profile []string        // no axis can have them: every recipe or every profile has a flag of that name
	Gates           recipe.Promises // of all gates; nil does not check waivers, and knows no settings of gates
}

// Load reads the built-in data and, if site is not empty, the folders below site. A
// site's item replaces the built-in item of the same name. On an error Load still
// returns the valid items.
func Load(site string, names Names) (Catalogue, error) {
	c := Catalogue{
		Patches: map[string][]patch.Patch{}, Site: site, bring: map[string]string{},
		Profiles: sync.OnceValues(func() ([]*profile.Profile, error) { return readProfiles(site, names.Profile) }),
		Proven:   sync.OnceValues(func() (proven.Cells, error) { return readProven(site) }),
	}
	err := c.add(recipes.FS, images.FS, patches.FS, "", names.Gates)
	if err != nil || site == "" {
		return c, err
	}
	data, err := openSite(site)
	if err != nil {
		return c, err
	}
	if err = c.add(data.folder("recipes"), data.folder("images"), data.folder("patches"), site, names.Gates); err == nil {
		err = errors.Join(checkPatches(c.Patches, c.Recipes), checkImages(c.Recipes, c.Images), checkInputs(c.Recipes), checkWaivers(c.Recipes, names.Gates), checkAdvisories(c.Recipes, c.Patches)) // skipped after an error: a recipe with an error is absent and would be reported as missing
	}
	var unfit error
	c.Recipes, unfit = withFlags(c.Recipes, names.Recipe)
	return c, errors.Join(err, unfit)
}

// readProven reads the built-in file and lays the site's file over it.
func readProven(site string) (proven.Cells, error) {
	cells, err := proven.Read(recipes.FS)
	if err != nil {
		return cells, err
	}
	folder, err := siteFolder(site, "recipes")
	if err != nil {
		return nil, err
	}
	own, err := proven.Read(folder)
	for id, proof := range own {
		proof.Site = true
		cells[id] = proof
	}
	return cells, err
}

// add lays the recipes, images and patches of a directory over the existing ones.
func (c *Catalogue) add(recipeFS, imageFS, patchFS fs.FS, site string, gates recipe.Promises) error {
	var bring map[string]string // built-in items are not noted
	if site != "" {
		bring = c.bring
	}
	rs, err1 := recipe.Load(recipeFS, filepath.Join(site, "recipes"), gates)
	c.Recipes = lay(bring, "recipe ", c.Recipes, rs, func(x *recipe.Recipe) string { return x.Name })
	is, err2 := image.Load(imageFS, filepath.Join(site, "images"))
	c.Images = lay(bring, "image ", c.Images, is, func(x image.Image) string { return x.Name })
	cs, err3 := image.LoadCPythons(imageFS, filepath.Join(site, "images"))
	c.CPythons = lay(bring, "cpython ", c.CPythons, cs, image.CPython.Minor)
	distributions, err4 := folders(patchFS)
	errs := []error{err1, err2, err3, err4}
	for _, distribution := range distributions {
		ps, err := patch.Load(patchFS, filepath.Join(site, "patches"), distribution)
		errs = append(errs, err)
		c.Patches[distribution] = lay(bring, "patch "+distribution+"/", c.Patches[distribution], ps, func(x patch.Patch) string { return x.Name })
	}
	return errors.Join(errs...)
}

// lay lays own items over a list: each replaces the item of the same name, or is added.
// bring, if not nil, gets each of them, and whether it replaces a built-in one.
func lay[T any](bring map[string]string, kind string, list, own []T, name func(T) string) []T {
	list = slices.Clone(list)
	for _, item := range own {
		how := "of the site"
		if i := slices.IndexFunc(list, func(x T) bool { return name(x) == name(item) }); i >= 0 {
			list[i], how = item, "replaces the built-in one"
		} else {
			list = append(list, item)
		}
		if bring != nil {
			bring[kind+name(item)] = how
		}
	}
	return list
}

// Diagnoses reads the known failures, with the site's laid over the built-in ones. Load
// does not read them, because few verbs need them.
func (c Catalogue) Diagnoses() ([]diagnose.Diagnosis, error) {
	all, err := diagnose.Load(diagnoses.FS, "diagnoses")
	if err != nil {
		return nil, err
	}
	own, err := c.SiteDiagnoses()
	return lay(nil, "", all, own, func(x diagnose.Diagnosis) string { return x.Name }), err
}

// SiteDiagnoses reads the known failures of the site alone. A run that may fail reads
// them early, so that a mistake in them is reported before the first build.
func (c Catalogue) SiteDiagnoses() ([]diagnose.Diagnosis, error) {
	folder, err := siteFolder(c.Site, "diagnoses")
	if err != nil {
		return nil, err
	}
	return diagnose.Load(folder, filepath.Join(c.Site, "diagnoses"))
}

// readProfiles reads the run-time environments, with the site's laid over the built-in
// ones.
func readProfiles(site string, taken []string) ([]*profile.Profile, error) {
	all, err := profile.Load(profiles.FS, "profiles")
	if err != nil {
		return all, err
	}
	folder, err := siteFolder(site, "profiles")
	if err != nil {
		return all, err
	}
	own, err := profile.Load(folder, filepath.Join(site, "profiles"))
	errs := []error{err}
	own = slices.DeleteFunc(own, func(p *profile.Profile) bool {
		err := checkFlags("profile", p.Name, p.AxisNames(), taken)
		errs = append(errs, err)
		return err != nil
	})
	return lay(nil, "", all, own, func(x *profile.Profile) string { return x.Name }), errors.Join(errs...)
}

// OfSite lists the parts of a cell defined by the site, and whether each is new.
func (c Catalogue) OfSite(d lock.Draft) []string {
	names := []string{"recipe " + d.Cell.Recipe.Name, "image " + d.Image.Name}
	if d.Runtime.Name != d.Image.Name {
		names = append(names, "image "+d.Runtime.Name)
	}
	if d.Image.CPython != nil {
		names = append(names, "cpython "+d.Image.CPython.Minor())
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

// Names returns the names of all recipes.
func (c Catalogue) Names() []string {
	var names []string
	for _, r := range c.Recipes {
		names = append(names, r.Name)
	}
	return names
}

// Locks returns the locks of the recipes on the host with the state directory home.
func (c Catalogue) Locks(home string) Locks { return Locks{c, home} }

// LockInputs returns the parts of the catalogue that drafts are made from.
func (c Catalogue) LockInputs() lock.Catalogue {
	return lock.Catalogue{Images: c.Images, CPythons: c.CPythons, Patches: c.Patches}
}

// folders returns the directories in the root of fsys, including links to directories.
// A missing root is no error.
func folders(fsys fs.FS) (names []string, err error) {
	entries, err := fs.ReadDir(fsys, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	errs := []error{err}
	for _, e := range entries {
		info, err := fs.Stat(fsys, e.Name())
		errs = append(errs, asUsage(err))
		if err == nil && info.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, errors.Join(errs...)
}

// Examiner returns an examiner for all known failures.
func (c Catalogue) Examiner() (*diagnose.Examiner, error) {
	known, err := c.Diagnoses()
	if err != nil {
		return nil, err
	}
	return diagnose.NewExaminer(known), nil
}

// ProvenCells returns the ids of a recipe's cells that were ever built and gated, sorted,
// and the day of the last build.
func (c Catalogue) ProvenCells(r *recipe.Recipe) (built []string, last string, err error) {
	done, err := c.Proven()
	for id, p := range done {
		if p.Recipe == r.Name {
			built, last = append(built, id), max(last, p.Day)
		}
	}
	slices.Sort(built)
	return built, last, err
}
