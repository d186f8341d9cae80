package recipe

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/base/shell"
	"builder/internal/base/subst"
	"builder/internal/plan/version"
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
	index, err := decode.OpenYAML(name, data, &r, gates.types())
	if err != nil {
		return nil, err
	}
	r.index, r.promises = index, gates
	var misnamed error
	if want := strings.TrimSuffix(path.Base(name), ".yaml"); r.Name != want {
		misnamed = diag.At(r.index.At("name"), "the recipe has the name %q, and its file %q", r.Name, want)
	}
	if err := errors.Join(misnamed, r.validate()); err != nil {
		return nil, err
	}
	return &r, nil
}

// validate returns all problems of a recipe as written: those the schema refuses, and
// those a schema cannot express.
func (r *Recipe) validate() error {
	var errs []error
	problem := func(pos diag.Pos, format string, args ...any) { errs = append(errs, diag.At(pos, format, args...)) }
	for _, required := range []struct{ at, text string }{
		{"summary", r.Summary},
		{"homepage", r.Homepage},
		{"id", r.ID},
		{"build", r.Build},
		{"source.project", r.Source.Project},
		{"source.version", r.Source.Version},
	} {
		if required.text == "" {
			problem(r.index.At("%s", required.at), "%s is missing", required.at)
		}
	}
	errs = append(errs, r.validateOrigin())
	git := slices.ContainsFunc(r.settings(), func(s written) bool { return s.From.Kind == Git })
	if len(r.Source.Released) == 0 && !git {
		problem(r.index.At("source.released"), "source.released is missing: the build uses the date of a release as its clock")
	}
	errs = append(errs, CheckMatrix(r.Axes, r.Compatible, r.index)...)
	errs = append(errs, r.validateSelectors()...)
	errs = append(errs, r.validateTemplates()...)
	for _, s := range r.settings() {
		errs = append(errs, r.validateLauncher(s)...)
		errs = append(errs, r.validateGates(s)...)
		errs = append(errs, r.validateTexts(s)...)
		errs = append(errs, r.validateBehaviours(s)...)
		errs = append(errs, r.validateTests(s)...)
		errs = append(errs, r.validateEnv(s)...)
	}
	errs = append(errs, r.validateNeeds()...)
	errs = append(errs, r.validateWaivers()...)
	errs = append(errs, r.validateTree()...)
	errs = append(errs, r.validateAdvisories()...)
	for i, v := range r.Variants {
		errs = append(errs, r.validateWhen(v.When, "variants[%d].when", i)...)
	}
	return errors.Join(errs...)
}

// validateOrigin requires a kind in the recipe or in a variant. The other fields of an
// origin can only be checked for a cell.
func (r *Recipe) validateOrigin() error {
	said := false
	for _, s := range r.settings() {
		switch s.From.Kind {
		case "":
		case Sdist, Git, Archive, Wheel:
			said = true
		default:
			return diag.At(r.index.At("%sfrom.kind", s.at), "kind %q is not %s", s.From.Kind, kinds)
		}
	}
	if !said {
		return diag.At(r.index.At("from"), "from is missing: write the origin of the source as kind %s", kinds)
	}
	return nil
}

// CheckMatrix returns the problems of axes and of the rules over them, as written in the file
// of index: of a recipe or of a profile.
func CheckMatrix(axes []Axis, rules []Rule, index decode.Index) []error {
	r := &Recipe{Axes: axes, index: index}
	errs := r.validateAxes()
	for i, rule := range rules {
		errs = append(errs, r.validateRule(rule, i)...)
	}
	return errs
}

// CheckWhen returns the problems of a condition over axes at a place in the file of index.
func CheckWhen(axes []Axis, c Condition, index decode.Index, at string) []error {
	return (&Recipe{Axes: axes, index: index}).validateWhen(c, "%s", at)
}

// validateRule requires either needs or one-of, and a reason.
func (r *Recipe) validateRule(rule Rule, i int) []error {
	errs := r.validateWhen(rule.When, "compatible[%d].when", i)
	if (len(rule.Needs) == 0) == (len(rule.OneOf) == 0) {
		errs = append(errs, diag.At(r.index.At("compatible[%d]", i), "a rule must have either needs or one-of"))
	}
	if rule.Because == "" || rule.Source == "" {
		errs = append(errs, diag.At(r.index.At("compatible[%d]", i), "a rule needs because and source: plan prints them for an excluded combination"))
	}
	if len(rule.Needs) > 0 {
		errs = append(errs, r.validateCondition(rule.Needs, "compatible[%d].needs", i)...)
	}
	for j, row := range rule.OneOf {
		errs = append(errs, r.validateCondition(row, "compatible[%d].one-of[%d]", i, j)...)
	}
	return errs
}

// validateTemplates rejects all names except axes and vars in texts that cannot use
// image facts. Texts with image facts are checked once the image is known.
func (r *Recipe) validateTemplates() []error {
	vars := map[string]string{}
	for _, name := range r.AxisNames() {
		vars[name] = ""
	}
	if _, ok := vars["python"]; ok {
		vars["cp"] = ""
	}
	var errs []error
	check := func(at, text string) {
		_, err := subst.Expand(text, vars)
		for _, e := range diag.All(err) {
			errs = append(errs, diag.At(r.index.At("%s", at), "%w", e.Err).WithHint("%s", e.Hint))
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
			errs = append(errs, diag.At(r.index.At("%s", at), "%q is the name of an axis", name))
		}
		vars[name] = ""
	}
	check("id", r.ID)
	check("source.project", r.Source.Project)
	check("source.version", r.Source.Version)
	return append(errs, r.validateScript(vars)...)
}

// validateScript rejects names of the recipe in the build script, which stays as it is
// written. Other braces are the shell's.
func (r *Recipe) validateScript(names map[string]string) (errs []error) {
	for _, text := range templateName.FindAllString(r.Build, -1) {
		name := strings.TrimSpace(strings.Trim(text, "{}"))
		if _, known := names[name]; known {
			variable := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			errs = append(errs, diag.At(r.index.At("build"), "build: the script gets no value for %s", text).
				WithHint("write %s: %q in env, and $%s in the script", variable, text, variable))
		}
	}
	return errs
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

// validateEnv rejects invalid names of environment variables.
func (r *Recipe) validateEnv(s written) []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if !shell.Name(name) {
			errs = append(errs, diag.At(r.index.At("%senv.%s", s.at, name), "env: %q is not the name of a variable", name).
				WithHint("use letters, digits and _, and begin with a letter or _"))
		}
	}
	return errs
}

// launchers are the controllers that can start ranks.
var launchers = []string{"mpi", "mpich", "gloo"}

func (r *Recipe) validateLauncher(s written) []error {
	if l := s.Expect.Launcher; l != "" && !slices.Contains(launchers, l) {
		return []error{diag.At(r.index.At("%sexpect.launcher", s.at), "launcher %q is not %s", l, strings.Join(launchers, " or "))}
	}
	return nil
}

func (r *Recipe) validateAxes() []error {
	var errs []error
	if len(r.Axes) == 0 {
		errs = append(errs, diag.At(r.index.At("axes"), "axes is missing: write at least one"))
	}
	seen := map[string]bool{}
	for i, a := range r.Axes {
		switch {
		case a.Name == "" || a.About == "" || len(a.Values) == 0:
			errs = append(errs, diag.At(r.index.At("axes[%d]", i), "an axis needs a name, about and at least one value"))
		case seen[a.Name]:
			errs = append(errs, diag.At(r.index.At("axes[%d].name", i), "axis %q occurs twice", a.Name))
		}
		if a.Finer != nil && (a.Finer.Because == "" || a.Finer.Source == "") {
			errs = append(errs, diag.At(r.index.At("axes[%d].finer", i), "finer needs because and source"))
		}
		seen[a.Name] = true
		values := map[string]bool{}
		for j, v := range a.Values {
			if v == "" || values[v] {
				errs = append(errs, diag.At(r.index.At("axes[%d].values[%d]", i, j), "value %q is empty or occurs twice", v))
			}
			if v == "all" || v == version.Latest {
				errs = append(errs, diag.At(r.index.At("axes[%d].values[%d]", i, j), "%s cannot be a value: --%s %[1]s has a meaning for every axis", v, a.Name))
			}
			values[v] = true
		}
	}
	return errs
}

func (r *Recipe) validateCondition(c Condition, format string, args ...any) []error {
	at := fmt.Sprintf(format, args...)
	var errs []error
	if len(c) == 0 {
		errs = append(errs, diag.At(r.index.At("%s", at), "a condition must name at least one axis"))
	}
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if _, ok := r.Axis(name); !ok {
			errs = append(errs, diag.At(r.index.At("%s.%s", at, name), "unknown axis %q", name).
				WithHint("%s", diag.DidYouMean(name, r.AxisNames())))
		}
		if _, err := version.ParseConstraint(c[name]); err != nil {
			errs = append(errs, diag.At(r.index.At("%s.%s", at, name), "%w", err))
		}
	}
	return errs
}

// validateWhen is validateCondition for a condition that some cell should meet: it also
// rejects a value that the axis lacks. A range may be meant for later values.
func (r *Recipe) validateWhen(c Condition, format string, args ...any) []error {
	errs := r.validateCondition(c, format, args...)
	if len(errs) > 0 {
		return errs
	}
	at := fmt.Sprintf(format, args...)
	for _, name := range slices.Sorted(maps.Keys(c)) {
		axis, _ := r.Axis(name)
		allowed, _ := version.ParseConstraint(c[name]) // validateCondition parsed it
		if !strings.ContainsAny(c[name], "<>=!~") && !slices.ContainsFunc(axis.Values, allowed.AllowsText) {
			errs = append(errs, diag.At(r.index.At("%s.%s", at, name), "the axis %s has no value %s: no cell meets this condition", name, c[name]).
				WithHint("its values are %s", strings.Join(axis.Values, ", ")))
		}
	}
	return errs
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
	return r.faultAt(diag.Pos{File: r.index.At("").File}, err)
}

// FaultAt is like Fault for errors in the value of a key such as source.released.
func (r *Recipe) FaultAt(key string, err error) error { return r.faultAt(r.index.At("%s", key), err) }

func (r *Recipe) faultAt(pos diag.Pos, err error) error {
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
