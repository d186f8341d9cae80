package catalogue

import (
	"embed"
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
	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/plan/image"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/patches"
	"builder/profiles"
	"builder/recipes"
)

// maxSiteFile limits the size of a site's files. The largest built-in file, a lock, is
// a hundredth of it.
const maxSiteFile = 32 << 20

// dataFolders are the folders of built-in data, and those of a site.
var dataFolders = []struct {
	name  string
	built embed.FS
}{
	{"recipes", recipes.FS}, {"images", images.FS}, {"patches", patches.FS},
	{"diagnoses", diagnoses.FS}, {"profiles", profiles.FS},
}

// siteFiles are the files of a site. They are untrusted.
type siteFiles struct{ fs.FS }

// folder returns a folder of the site, which may be missing.
func (s siteFiles) folder(name string) fs.FS {
	sub, _ := fs.Sub(s.FS, name) // never fails: the name is valid
	return sub
}

// siteFolder opens a site and returns one of its folders. Without a site it is empty.
func siteFolder(site, name string) (fs.FS, error) {
	if site == "" {
		return embed.FS{}, nil
	}
	files, err := openSite(site)
	if err != nil {
		return nil, err
	}
	return files.folder(name), nil
}

// openSite opens a site. It returns an error if the directory is no site, or if it has
// files that would be silently ignored.
func openSite(site string) (siteFiles, error) {
	info, err := os.Stat(site)
	if err != nil {
		return siteFiles{}, diag.Errorf(diag.Usage, "--recipes: %w", err).WithHint("make the folders of a site with `builder config init DIR`")
	}
	if !info.IsDir() {
		return siteFiles{}, diag.Errorf(diag.Usage, "--recipes: %s is not a directory", site).WithHint("name the directory with the folders recipes, images or patches")
	}
	dir, err := regular.Inside(site, maxSiteFile)
	if err != nil {
		return siteFiles{}, diag.Errorf(diag.Usage, "--recipes: %w", err)
	}
	return siteFiles{dir}, checkSite(site, dir)
}

func checkSite(site string, dir fs.FS) error {
	var errs []error
	some := false
	for _, folder := range dataFolders {
		info, err := fs.Stat(dir, folder.name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err == nil && !info.IsDir():
			err = diag.Errorf(diag.Usage, "--recipes: %s is not a directory", filepath.Join(site, folder.name))
		}
		some, errs = true, append(errs, asUsage(err))
	}
	if !some {
		return diag.Errorf(diag.Usage, "--recipes: %s has none of the folders recipes, images, patches, diagnoses and profiles", site).
			WithHint("name the directory above these folders")
	}
	for _, pattern := range []string{"recipes/*.yml", "images/*.yml", "patches/*/*.yml", "diagnoses/*.yml", "profiles/*.yml"} {
		files, _ := fs.Glob(dir, pattern) // never fails: the pattern is valid
		for _, file := range files {
			errs = append(errs, diag.At(diag.Pos{File: filepath.Join(site, file)}, "builder reads only files that end in .yaml"))
		}
	}
	return errors.Join(errs...)
}

// asUsage turns a read error of a site's file into a usage error, unless it has a class
// already.
func asUsage(err error) error {
	if err == nil || diag.Worst(err) != diag.OK {
		return err
	}
	return diag.Errorf(diag.Usage, "--recipes: %w", err).WithHint("builder reads no file outside the site: copy the file into it")
}

// checkPatches rejects patches for an unknown recipe.
func checkPatches(patches map[string][]patch.Patch, known []*recipe.Recipe) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(patches)) {
		if _, err := recipe.Find(known, name); err != nil {
			where := "patches/" + name
			if all := patches[name]; len(all) > 0 && len(all[0].Edits) > 0 && all[0].Edits[0].At.File != "" {
				where = filepath.Dir(all[0].Edits[0].At.File)
			}
			errs = append(errs, fmt.Errorf("%s: %w", where, err))
		}
	}
	return errors.Join(errs...)
}

// checkImages rejects names of unknown images.
func checkImages(all []*recipe.Recipe, known []image.Image) error {
	var errs []error
	for _, r := range all {
		for _, n := range r.Images() {
			if _, err := image.Find(known, n.Name); err != nil {
				errs = append(errs, diag.At(n.Pos, "%w", err))
			}
		}
	}
	return errors.Join(errs...)
}

// checkInputs rejects inputs from unknown recipes, and cycles of inputs.
func checkInputs(all []*recipe.Recipe) error {
	needs := map[string][]string{}
	var errs []error
	for _, r := range all {
		for _, in := range recipe.Each(r, func(s recipe.Settings) []recipe.Input { return s.Inputs }) {
			needs[r.Name] = append(needs[r.Name], in.Recipe)
		}
		slices.Sort(needs[r.Name])
		needs[r.Name] = slices.Compact(needs[r.Name])
		for _, name := range needs[r.Name] {
			if _, err := recipe.Find(all, name); err != nil {
				errs = append(errs, fmt.Errorf("recipe %s: input: %w", r.Name, err))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		if circle := circleFrom(needs, name, nil, map[string]bool{}); circle != nil {
			errs = append(errs, diag.Errorf(diag.Usage, "recipe %s is its own input: %s", name, strings.Join(circle, ", ")))
		}
	}
	return errors.Join(errs...)
}

// circleFrom returns a cycle from the first name of path back to it.
func circleFrom(needs map[string][]string, name string, path []string, seen map[string]bool) []string {
	if slices.Contains(path, name) {
		if path[0] == name {
			return append(path, name)
		}
		return nil
	}
	if seen[name] {
		return nil // no path leads back from here
	}
	seen[name] = true
	path = append(slices.Clone(path), name)
	for _, next := range needs[name] {
		if circle := circleFrom(needs, next, path, seen); circle != nil {
			return circle
		}
	}
	return nil
}

// checkWaivers rejects waivers of unknown gates: they would never expire.
func checkWaivers(all []*recipe.Recipe, gates recipe.Promises) error {
	if gates == nil {
		return nil
	}
	var errs []error
	for _, r := range all {
		for _, w := range recipe.Each(r, func(s recipe.Settings) []recipe.Waiver { return s.Expect.Waivers }) {
			if _, known := gates[w.Gate]; !known {
				errs = append(errs, diag.Errorf(diag.Usage, "recipe %s: expect.waivers: unknown gate %q", r.Name, w.Gate).
					WithHint("%s", diag.DidYouMean(w.Gate, slices.Sorted(maps.Keys(gates)))))
			}
		}
	}
	return errors.Join(errs...)
}

// checkAdvisories rejects an advisory whose mending patch does not exist: every build
// would be reported as vulnerable.
func checkAdvisories(all []*recipe.Recipe, patches map[string][]patch.Patch) error {
	var errs []error
	for _, r := range all {
		var names []string
		for _, p := range patches[r.Name] {
			names = append(names, p.Name)
		}
		for _, a := range recipe.Each(r, func(s recipe.Settings) []recipe.Advisory { return s.Advisories }) {
			if !slices.Contains(names, a.MendedBy) {
				errs = append(errs, diag.Errorf(diag.Usage, "recipe %s: advisory %s: the recipe has no patch %q", r.Name, a.ID, a.MendedBy).
					WithHint("%s", diag.DidYouMean(a.MendedBy, names)))
			}
		}
	}
	return errors.Join(errs...)
}

var axisName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// withFlags returns the recipes whose axes and selectors can all be flags, and an error
// for each other one.
func withFlags(all []*recipe.Recipe, taken []string) ([]*recipe.Recipe, error) {
	var errs []error
	all = slices.DeleteFunc(slices.Clone(all), func(r *recipe.Recipe) bool {
		names := r.AxisNames()
		for _, s := range r.Selectors {
			names = append(names, s.Name)
		}
		err := checkFlags("recipe", r.Name, names, taken)
		errs = append(errs, err)
		return err != nil
	})
	return all, errors.Join(errs...)
}

// checkFlags rejects names that cannot be flags: the flag parser would panic.
func checkFlags(kind, of string, names, taken []string) error {
	var errs []error
	for _, name := range names {
		switch {
		case slices.Contains(taken, name):
			errs = append(errs, diag.Errorf(diag.Usage, "%s %s: %q cannot be the name of an axis or a selector: every %s has the flag --%s", kind, of, name, kind, name))
		case !axisName.MatchString(name):
			errs = append(errs, diag.Errorf(diag.Usage, "%s %s: %q cannot be the name of an axis or a selector: it is a flag", kind, of, name).
				WithHint("use lower-case letters, digits and dashes"))
		}
	}
	return errors.Join(errs...)
}
