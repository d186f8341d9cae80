package recipe

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"builder/internal/decode"
	"builder/internal/diag"
	"builder/internal/version"
)

// Load reads every *.yaml of fsys; dir is what positions in messages begin with.
// All faults of all files come together.
func Load(fsys fs.FS, dir string) ([]*Recipe, error) {
	files, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, err
	}
	var all []*Recipe
	var faults []error
	for _, file := range files {
		data, err := fs.ReadFile(fsys, file)
		if err != nil {
			return nil, err
		}
		r, err := Parse(path.Join(dir, file), data)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		all = append(all, r)
	}
	return all, errors.Join(faults...)
}

// Parse reads one recipe; name is the path that messages show, and its base
// must be the recipe's name.
func Parse(name string, data []byte) (*Recipe, error) {
	var r Recipe
	if err := decode.YAML(name, data, &r); err != nil {
		return nil, err
	}
	index, err := decode.Positions(name, data)
	if err != nil {
		return nil, err
	}
	r.index = index
	if want := strings.TrimSuffix(path.Base(name), ".yaml"); r.Name != want {
		return nil, diag.At(r.index.At("name"), "the recipe is called %q, its file %q", r.Name, want)
	}
	return &r, r.validate()
}

// validate returns all that is wrong with a recipe as written.
func (r *Recipe) validate() error {
	var faults []error
	fault := func(pos diag.Pos, format string, args ...any) { faults = append(faults, diag.At(pos, format, args...)) }
	for field, text := range map[string]string{"summary": r.Summary, "id": r.ID, "build": r.Build, "source": r.Source.Project} {
		if text == "" {
			fault(r.index.At("%s", field), "%s is missing", field)
		}
	}
	if r.Source.Kind != Sdist {
		fault(r.index.At("source.kind"), "source.kind %q is not sdist", r.Source.Kind)
	}
	faults = append(faults, r.validateAxes()...)
	for i, rule := range r.Compatible {
		faults = append(faults, r.validateCondition(rule.When, "compatible[%d].when", i)...)
		faults = append(faults, r.validateCondition(rule.Needs, "compatible[%d].needs", i)...)
		if rule.Because == "" || rule.Source == "" {
			fault(r.index.At("compatible[%d]", i), "a rule needs because and source: plan shows them to whoever misses the combination")
		}
	}
	for i, v := range r.Variants {
		faults = append(faults, r.validateCondition(v.When, "variants[%d].when", i)...)
	}
	return errors.Join(faults...)
}

func (r *Recipe) validateAxes() []error {
	var faults []error
	seen := map[string]bool{}
	for i, a := range r.Axes {
		switch {
		case a.Name == "" || len(a.Values) == 0:
			faults = append(faults, diag.At(r.index.At("axes[%d]", i), "an axis needs a name and at least one value"))
		case seen[a.Name]:
			faults = append(faults, diag.At(r.index.At("axes[%d].name", i), "axis %q is there twice", a.Name))
		}
		seen[a.Name] = true
		values := map[string]bool{}
		for j, v := range a.Values {
			if v == "" || values[v] {
				faults = append(faults, diag.At(r.index.At("axes[%d].values[%d]", i, j), "value %q is empty or there twice", v))
			}
			values[v] = true
		}
	}
	return faults
}

func (r *Recipe) validateCondition(c Condition, format string, args ...any) []error {
	at := fmt.Sprintf(format, args...)
	var faults []error
	if len(c) == 0 {
		faults = append(faults, diag.At(r.index.At("%s", at), "a condition names at least one axis"))
	}
	for name, text := range c {
		if _, ok := r.Axis(name); !ok {
			faults = append(faults, diag.At(r.index.At("%s.%s", at, name), "no axis is called %q", name).
				WithHint("%s", diag.DidYouMean(name, r.AxisNames())))
		}
		if _, err := version.ParseConstraint(text); err != nil {
			faults = append(faults, diag.At(r.index.At("%s.%s", at, name), "%w", err))
		}
	}
	return faults
}

// Find returns the recipe of that name.
func Find(all []*Recipe, name string) (*Recipe, error) {
	names := make([]string, len(all))
	for i, r := range all {
		if r.Name == name {
			return r, nil
		}
		names[i] = r.Name
	}
	return nil, diag.Errorf(diag.Usage, "no recipe is called %q", name).WithHint("%s", diag.DidYouMean(name, names))
}
