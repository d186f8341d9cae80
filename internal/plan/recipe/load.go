package recipe

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/base/subst"
)

// Load reads every *.yaml of fsys. Positions in error messages begin with dir. It
// returns the errors of all files together. gates are those that recipes may name in
// expect.
func Load(fsys fs.FS, dir string, gates Promises) ([]*Recipe, error) {
	return decode.Folder(fsys, dir, func(name string, data []byte) (*Recipe, error) { return Parse(name, data, gates) })
}

// Parse reads one recipe. name is its path in error messages. The base name without
// .yaml must be the name of the recipe.
func Parse(name string, data []byte, gates Promises) (*Recipe, error) {
	var r Recipe
	f, err := decode.OpenYAML(name, data, &r, gates.types())
	if err != nil {
		return nil, err
	}
	r.index, r.promises = f.Index, gates
	f.Named("recipe", r.Name)
	r.validate(f)
	if err := f.Err(); err != nil {
		return nil, err
	}
	return &r, nil
}

// validate adds the problems of a recipe as written that its types and tags cannot
// express.
func (r *Recipe) validate(f *decode.File) {
	all := r.settings()
	validateOrigin(f, all, r.Source.Released)
	if r.Name == "all" || strings.ContainsAny(r.Name, ", ") {
		f.Add("name", "%q is no name of a recipe: --accept takes names with commas between them, and all for every recipe", r.Name)
	}
	c := checker{f, r.Axes}
	c.matrix(r.Compatible)
	c.selectors(r.Selectors)
	r.validateTemplates(f)
	for _, s := range all {
		r.promises.validate(f, s)
		s.validateTexts(f)
		s.validateLists(f, r.Name)
		f.Env(s.at+"env", s.Env)
	}
	validateTree(f, all)
	for i, v := range r.Variants {
		c.when(v.When, fmt.Sprintf("variants[%d].when", i))
	}
}

// validateOrigin requires a kind in the recipe or in a variant, and dates of releases.
// The other fields of an origin can only be checked for a cell.
func validateOrigin(f *decode.File, all []written, released map[string]string) {
	if !slices.ContainsFunc(all, func(s written) bool { return s.From.Kind != "" }) {
		f.Add("from", "from is missing: write the origin of the source as kind %s", kinds)
	}
	git := slices.ContainsFunc(all, func(s written) bool { return s.From.Kind == Git })
	if len(released) == 0 && !git {
		f.Add("source.released", "source.released is missing: the build uses the date of a release as its clock")
	}
}

// validateTemplates rejects all names except axes and vars in texts that cannot use
// image facts. Texts with image facts are checked once the image is known.
func (r *Recipe) validateTemplates(f *decode.File) {
	vars := map[string]string{}
	for _, name := range r.AxisNames() {
		vars[name] = ""
	}
	if _, ok := vars["python"]; ok {
		vars["cp"] = ""
	}
	check := func(at, text string) {
		_, err := subst.Expand(text, vars)
		for _, e := range diag.All(err) {
			f.Add(at, "%w", e.Err).Hint = e.Hint
		}
	}
	own := map[string]string{} // names in vars, and the position of their first definition
	for _, s := range r.settings() {
		for _, name := range slices.Sorted(maps.Keys(s.Vars)) {
			own[name] = s.at + "vars." + name
			check(own[name], s.Vars[name])
		}
	}
	for name, at := range own {
		if _, taken := vars[name]; taken {
			f.Add(at, "%q is the name of an axis", name)
		}
		vars[name] = ""
	}
	check("id", r.ID)
	check("source.project", r.Source.Project)
	check("source.version", r.Source.Version)
	validateScript(f, r.Build, vars)
}

// validateScript rejects names of the recipe in the build script, which stays as it is
// written. Other braces are the shell's.
func validateScript(f *decode.File, script string, names map[string]string) {
	for _, text := range templateName.FindAllString(script, -1) {
		name := strings.TrimSpace(strings.Trim(text, "{}"))
		if _, known := names[name]; known {
			variable := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			f.Add("build", "build: the script gets no value for %s", text).
				Hint = fmt.Sprintf("write %s: %q in env, and $%s in the script", variable, text, variable)
		}
	}
}

// written holds settings and the prefix of their position in the file: "" for the
// recipe, "variants[1]." for a variant.
type written struct {
	Settings
	at string
}

// settings returns the settings of the recipe and of all variants.
func (r *Recipe) settings() []written {
	all := []written{{r.Settings, ""}}
	for i, v := range r.Variants {
		all = append(all, written{v.Settings, fmt.Sprintf("variants[%d].", i)})
	}
	return all
}

// Each lists what the settings of the recipe and of all variants have of one kind.
func Each[T any](r *Recipe, of func(Settings) []T) (all []T) {
	for _, s := range r.settings() {
		all = append(all, of(s.Settings)...)
	}
	return all
}

// Find returns the recipe with the given name.
func Find(all []*Recipe, name string) (*Recipe, error) {
	names := make([]string, len(all))
	for i, r := range all {
		if r.Name == name {
			return r, nil
		}
		names[i] = r.Name
	}
	return nil, diag.Errorf(diag.Usage, "unknown recipe %q", name).WithHint("%s", diag.DidYouMean(name, names))
}

// Fault adds the recipe's file to errors that were found after decoding and have no
// position. Their texts quote the faulty value.
func (r *Recipe) Fault(err error) error {
	return faultAt(diag.Pos{File: r.index.At("").File}, err)
}

// FaultAt is like Fault for errors in the value of a key such as source.released.
func (r *Recipe) FaultAt(key string, err error) error { return faultAt(r.index.At(key), err) }

func faultAt(pos diag.Pos, err error) error {
	if err == nil {
		return nil
	}
	all := diag.All(err)
	for _, e := range all {
		if e.Pos.File == "" {
			e.Pos = pos
			e.Hint = cmp.Or(e.Hint, "correct the recipe; docs/recipes.md explains its keys")
		}
	}
	return diag.Joined(all)
}
