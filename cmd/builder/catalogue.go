package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"builder/diagnoses"
	"builder/images"
	"builder/internal/diag"
	"builder/internal/diagnose"
	"builder/internal/gate"
	"builder/internal/image"
	"builder/internal/lock"
	"builder/internal/patch"
	"builder/internal/profile"
	"builder/internal/recipe"
	"builder/internal/stack"
	"builder/patches"
	"builder/profiles"
	"builder/recipes"
	"builder/stacks"
)

// catalogue is everything that the data folders hold, those of the tool with
// those of a site laid over them.
type catalogue struct {
	recipes []*recipe.Recipe
	images  []image.Image
	patches map[string][]patch.Patch
	site    string          // directory given by --recipes, or ""
	owned   map[string]bool // recipes that the site brings itself
	// bring says of what the site brings whether it is new or replaces something:
	// "patch horovod/findhip" and its like.
	bring map[string]string
}

// loadCatalogue reads the built-in data and, if site is not empty, the folders
// recipes, stacks, images and patches below it. What has the same name as something
// built in replaces it.
func loadCatalogue(site string) (catalogue, error) {
	c := catalogue{patches: map[string][]patch.Patch{}, site: site, owned: map[string]bool{}, bring: map[string]string{}}
	err := c.add(recipes.FS, images.FS, patches.FS, "")
	built, err2 := stack.Load(stacks.FS, "stacks")
	if err = errors.Join(err, err2); err != nil {
		return c, err
	}
	if site == "" {
		return c, c.addStacks(built, nil)
	}
	if err := checkSite(site); err != nil {
		return c, err
	}
	sub := func(name string) fs.FS { return os.DirFS(filepath.Join(site, name)) }
	if err = c.add(sub("recipes"), sub("images"), sub("patches"), site); err == nil {
		err = errors.Join(c.checkPatches(), c.checkInputs(), c.checkWaivers(), c.checkAdvisories()) // a recipe with a fault would be missed
	}
	own, err2 := stack.Load(sub("stacks"), filepath.Join(site, "stacks"))
	err = errors.Join(err, err2, c.checkAxes())
	if err == nil {
		err = c.addStacks(built, own)
	}
	return c, err
}

// addStacks adds stacks as recipes, those of a site laid over the built-in ones,
// when all recipes that they may name are there.
func (c *catalogue) addStacks(built, own []*stack.Stack) error {
	all := built
	for _, s := range own {
		name := s.FullName()
		c.owned[name], c.bring["recipe "+name] = true, "of the site"
		if slices.ContainsFunc(built, func(x *stack.Stack) bool { return x.Name == s.Name }) {
			c.bring["recipe "+name] = "replaces the built-in one"
		}
		all = replace(all, s, func(x *stack.Stack) string { return x.Name })
	}
	var faults []error
	known := stack.Catalogue{Recipes: c.recipes, Profile: c.environment}
	for _, s := range all {
		r, err := s.Recipe(known)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		c.recipes = append(c.recipes, r)
	}
	return errors.Join(faults...)
}

// checkSite refuses a directory, and files in it, that would be passed over in
// silence.
func checkSite(site string) error {
	info, err := os.Stat(site)
	if err != nil {
		return diag.Errorf(diag.Usage, "--recipes: %w", err)
	}
	if !info.IsDir() {
		return diag.Errorf(diag.Usage, "--recipes: %s is not a directory", site)
	}
	dir := os.DirFS(site)
	there := func(name string) bool { _, err := fs.Stat(dir, name); return err == nil }
	if !slices.ContainsFunc([]string{"recipes", "stacks", "images", "patches", "diagnoses", "profiles"}, there) {
		return diag.Errorf(diag.Usage, "--recipes: %s has none of the folders recipes, stacks, images, patches, diagnoses and profiles", site).
			WithHint("name the directory that they lie in")
	}
	var faults []error
	for _, pattern := range []string{"recipes/*.yml", "stacks/*.yml", "images/*.yml", "patches/*/*.yml", "diagnoses/*.yml", "profiles/*.yml"} {
		files, _ := fs.Glob(dir, pattern) // the pattern is well formed
		for _, file := range files {
			faults = append(faults, diag.At(diag.Pos{File: filepath.Join(site, file)}, "only files that end in .yaml are read"))
		}
	}
	return errors.Join(faults...)
}

// checkPatches refuses patches for a recipe that does not exist.
func (c *catalogue) checkPatches() error {
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(c.patches)) {
		if _, err := recipe.Find(c.recipes, name); err != nil {
			faults = append(faults, fmt.Errorf("patches/%s: %w", name, err))
		}
	}
	return errors.Join(faults...)
}

// checkWaivers refuses waivers of gates that do not exist: they would never
// expire.
func (c *catalogue) checkWaivers() error {
	var faults []error
	for _, r := range c.recipes {
		for _, w := range r.Waivers() {
			if !slices.Contains(gate.Names(), w.Gate) {
				faults = append(faults, diag.Errorf(diag.Usage, "recipe %s: expect.waivers: no gate is called %q", r.Name, w.Gate).
					WithHint("%s", diag.DidYouMean(w.Gate, gate.Names())))
			}
		}
	}
	return errors.Join(faults...)
}

// checkAdvisories refuses advisories that a patch is said to mend which does not
// exist: every build would be said to be open.
func (c *catalogue) checkAdvisories() error {
	var faults []error
	for _, r := range c.recipes {
		var names []string
		for _, p := range c.patches[r.Name] {
			names = append(names, p.Name)
		}
		for _, a := range r.KnownAdvisories() {
			if !slices.Contains(names, a.MendedBy) {
				faults = append(faults, diag.Errorf(diag.Usage, "recipe %s: advisory %s: no patch of it is called %q", r.Name, a.ID, a.MendedBy).
					WithHint("%s", diag.DidYouMean(a.MendedBy, names)))
			}
		}
	}
	return errors.Join(faults...)
}

var axisName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// checkAxes refuses axes that cannot be flags, and leaves their recipes out: the
// flag parser would panic.
func (c *catalogue) checkAxes() error {
	taken := append(recipeFlagNames(), "help", "h")
	var faults []error
	c.recipes = slices.DeleteFunc(slices.Clone(c.recipes), func(r *recipe.Recipe) bool {
		before := len(faults)
		for _, name := range r.AxisNames() {
			switch {
			case slices.Contains(taken, name):
				faults = append(faults, diag.Errorf(diag.Usage, "recipe %s: no axis can be called %q: every recipe has the flag --%s", r.Name, name, name))
			case !axisName.MatchString(name):
				faults = append(faults, diag.Errorf(diag.Usage, "recipe %s: no axis can be called %q: an axis is a flag", r.Name, name).
					WithHint("use small letters, digits and dashes"))
			}
		}
		return len(faults) > before
	})
	return errors.Join(faults...)
}

// environment is the text of the one combination of a profile, as a stack wants it.
func (c *catalogue) environment(name string, axes map[string]string) (string, error) {
	all, err := c.profiles()
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

func (c *catalogue) add(recipeFS, imageFS, patchFS fs.FS, site string) error {
	rs, err1 := recipe.Load(recipeFS, filepath.Join(site, "recipes"))
	is, err2 := image.Load(imageFS, filepath.Join(site, "images"))
	note := func(what string, there bool) {
		if site != "" && there {
			c.bring[what] = "replaces the built-in one"
		} else if site != "" {
			c.bring[what] = "of the site"
		}
	}
	for _, r := range rs {
		note("recipe "+r.Name, slices.Contains(c.names(), r.Name))
		c.recipes = replace(c.recipes, r, func(x *recipe.Recipe) string { return x.Name })
		c.owned[r.Name] = site != ""
	}
	for _, i := range is {
		note("image "+i.Name, slices.ContainsFunc(c.images, func(x image.Image) bool { return x.Name == i.Name }))
		c.images = replace(c.images, i, func(x image.Image) string { return x.Name })
	}
	faults := []error{err1, err2}
	for _, distribution := range folders(patchFS) {
		ps, err := patch.Load(patchFS, filepath.Join(site, "patches"), distribution)
		faults = append(faults, err)
		for _, p := range ps {
			note("patch "+distribution+"/"+p.Name, slices.ContainsFunc(c.patches[distribution], func(x patch.Patch) bool { return x.Name == p.Name }))
			c.patches[distribution] = replace(c.patches[distribution], p, func(x patch.Patch) string { return x.Name })
		}
	}
	return errors.Join(faults...)
}

// diagnoses reads the known failures, those of the site laid over the built-in
// ones. Only the verbs that look for them pay for that.
func (c catalogue) diagnoses() ([]diagnose.Diagnosis, error) {
	all, err := diagnose.Load(diagnoses.FS, "diagnoses")
	if c.site == "" || err != nil {
		return all, err
	}
	if err := checkSite(c.site); err != nil {
		return nil, err
	}
	own, err := diagnose.Load(os.DirFS(filepath.Join(c.site, "diagnoses")), filepath.Join(c.site, "diagnoses"))
	for _, d := range own {
		all = replace(all, d, func(x diagnose.Diagnosis) string { return x.Name })
	}
	return all, err
}

// profiles reads the run-time environments, those of the site laid over the built-in
// ones. What is there is read also where something has a fault.
func (c catalogue) profiles() ([]*profile.Profile, error) {
	all, err := profile.Load(profiles.FS, "profiles")
	if c.site == "" || err != nil {
		return all, err
	}
	if err := checkSite(c.site); err != nil {
		return all, err
	}
	own, err := profile.Load(os.DirFS(filepath.Join(c.site, "profiles")), filepath.Join(c.site, "profiles"))
	for _, p := range own {
		if fault := checkProfile(p); fault != nil {
			err = errors.Join(err, fault)
			continue
		}
		all = replace(all, p, func(x *profile.Profile) string { return x.Name })
	}
	return all, err
}

// checkProfile refuses axes that cannot be flags beside those of every profile: the
// flag parser would panic.
func checkProfile(p *profile.Profile) error {
	taken := append(flagNames(profileFlags()), "help", "h")
	var faults []error
	for _, name := range p.AxisNames() {
		if slices.Contains(taken, name) {
			faults = append(faults, diag.Errorf(diag.Usage, "profile %s: no axis can be called %q: every profile has the flag --%s", p.Name, name, name))
		}
	}
	return errors.Join(faults...)
}

// ofSite says what of a cell the site brings, and whether it is new.
func (c catalogue) ofSite(d lock.Draft) []string {
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

// siteDir finds the value of --recipes before the flags are parsed: which
// commands and flags there are depends on it.
func siteDir(args []string) string {
	site := os.Getenv("BUILDER_RECIPES")
	for i, arg := range args {
		flag, value, assigned := strings.Cut(arg, "=")
		switch {
		case flag != "--recipes" && flag != "-recipes":
		case assigned:
			site = value
		case i+1 < len(args):
			site = args[i+1]
		}
	}
	return site
}
