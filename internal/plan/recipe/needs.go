package recipe

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"builder/internal/base/diag"
)

// An Input names one cell of another recipe. Values of its axes may contain names in
// double braces. An axis without a value gets the one preferred by the other recipe.
type Input struct {
	Recipe string            `yaml:"recipe" json:"recipe" jsonschema:"description=name of the other recipe"`
	Axes   map[string]string `yaml:"axes,omitempty" json:"axes,omitempty" jsonschema:"description=values of its axes; together with its preferences they choose one cell"`
}

// A Variable is a setting of the artifact's run-time environment, with its reason.
type Variable struct {
	Name    string `yaml:"name" json:"name" jsonschema:"description=name of the variable"`
	Value   string `yaml:"value" json:"value" jsonschema:"description=its value; without characters that need quotes"`
	Because string `yaml:"because" json:"because" jsonschema:"description=the reason that is printed beside it"`
	Source  string `yaml:"source" json:"source" jsonschema:"format=uri,description=where the fact stands"`
}

var (
	variableName = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	plainValue   = regexp.MustCompile(`^[A-Za-z0-9_.,:/+=-]+$`) // has the same meaning in every shell, without quotes
)

// problem returns the first problem of a variable, or "".
func (v Variable) problem() string {
	switch {
	case !variableName.MatchString(v.Name):
		return fmt.Sprintf("%q is not the name of a variable", v.Name)
	case !plainValue.MatchString(v.Value):
		return fmt.Sprintf("%s: the value %q needs quotes, which are not supported", v.Name, v.Value)
	case v.Because == "" || v.Source == "":
		return v.Name + " needs because and source: they are printed beside it"
	}
	return ""
}

// InputRecipes returns the names of the recipes used as inputs of r, sorted and
// distinct.
func (r *Recipe) InputRecipes() []string {
	var names []string
	for _, s := range r.settings() {
		for _, in := range s.Inputs {
			names = append(names, in.Recipe)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// validateNeeds checks the requirements of cells other than source and images.
func (r *Recipe) validateNeeds() []error {
	var errs []error
	for _, s := range r.settings() {
		for j, v := range s.Profile {
			if text := v.problem(); text != "" {
				errs = append(errs, diag.At(r.index.At("%sprofile[%d]", s.at, j), "%s", text))
			}
		}
		if s.License != "" && !spdxExpression.MatchString(s.License) {
			errs = append(errs, diag.At(r.index.At("%slicense", s.at), "license %q is no SPDX expression such as Apache-2.0 AND MIT", s.License))
		}
		for j, v := range s.Vendored {
			if text := v.problem(); text != "" {
				errs = append(errs, diag.At(r.index.At("%svendored[%d]", s.at, j), "%s", text))
			}
		}
		for j, in := range s.Inputs {
			if in.Recipe == "" || in.Recipe == r.Name {
				errs = append(errs, diag.At(r.index.At("%sinputs[%d]", s.at, j), "an input must name another recipe, not %q", in.Recipe))
			}
		}
	}
	return errs
}

// spdxExpression matches licences joined by operators. It does not know their names.
var spdxExpression = regexp.MustCompile(`^\(*[A-Za-z0-9.+-]+\)*( (AND|OR|WITH) \(*[A-Za-z0-9.+-]+\)*)*$`)

// problem returns the first problem of a vendored source, or "".
func (v Vendored) problem() string {
	switch {
	case v.Name == "" || v.License == "":
		return "a vendored source needs a name and a license"
	case !filepath.IsLocal(v.Path):
		return fmt.Sprintf("path %q is outside the source", v.Path)
	case !strings.HasPrefix(v.Repository, "https://"):
		return fmt.Sprintf("repository %q is not an https address", v.Repository)
	case !commit.MatchString(v.Commit):
		return fmt.Sprintf("commit %q is not 40 hexadecimal digits", v.Commit)
	}
	return ""
}
