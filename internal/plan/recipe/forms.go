package recipe

import (
	"builder/internal/base/diag"
	"builder/internal/plan/version"
)

// Truths is a condition evaluated in advance: for each of its axes, whether it allows
// each value. A matrix has many more points than values.
type Truths map[string]map[string]bool

// Truths evaluates a condition over the axes of the recipe.
func (r *Recipe) Truths(c Condition) (Truths, error) {
	all := make(Truths, len(c))
	for name, text := range c {
		if known, ok := r.truths[name+" "+text]; ok {
			all[name] = known[name]
			continue
		}
		constraint, err := version.ParseConstraint(text)
		if err != nil {
			return nil, err
		}
		axis, _ := r.Axis(name) // without values if the axis does not exist
		all[name] = make(map[string]bool, len(axis.Values))
		for _, value := range axis.Values {
			all[name][value] = constraint.AllowsText(value)
		}
	}
	return all, nil
}

// Allow reports whether all values of the axes are allowed.
func (t Truths) Allow(axes map[string]string) bool {
	for name, values := range t {
		if !values[axes[name]] {
			return false
		}
	}
	return true
}

// evaluate evaluates all conditions of a recipe from a file. They share the truths of
// equal constraints.
func (r *Recipe) evaluate() error {
	r.truths = map[string]Truths{}
	add := func(c Condition) error {
		all, err := r.Truths(c)
		for name := range all {
			r.truths[name+" "+c[name]] = all
		}
		return err
	}
	for _, rule := range r.Compatible {
		for _, c := range append(rule.Rows(), rule.When) {
			if err := add(c); err != nil {
				return err
			}
		}
	}
	for _, v := range r.Variants {
		if err := add(v.When); err != nil {
			return err
		}
		when, err := r.Truths(v.When)
		if err != nil {
			return err
		}
		r.when = append(r.when, when)
	}
	return nil
}

// holds reports whether the condition of a variant holds.
func (r *Recipe) holds(variant int, axes map[string]string) (bool, error) {
	if r.when != nil {
		return r.when[variant].Allow(axes), nil
	}
	_, ok, err := r.Variants[variant].When.Holds(axes)
	return ok, err
}

// Forms returns the settings of the points of one recipe. Points for which the same
// variants hold have the same settings, and share them.
type Forms struct {
	recipe *Recipe
	made   map[string]Settings // by the variants that hold
}

// NewForms returns the settings of the points of r.
func NewForms(r *Recipe) *Forms { return &Forms{r, map[string]Settings{}} }

// For is [Recipe.For]. Change no list or map of the settings: others share it.
func (f *Forms) For(axes map[string]string) (Settings, error) {
	holding := make([]byte, len(f.recipe.Variants))
	for i := range holding {
		ok, err := f.recipe.holds(i, axes)
		if err != nil {
			return Settings{}, err
		}
		if ok {
			holding[i] = 1
		}
	}
	if known, ok := f.made[string(holding)]; ok {
		return known, nil
	}
	merged := f.recipe.Settings
	for i, v := range f.recipe.Variants {
		if holding[i] == 0 {
			continue
		}
		both, clash := merge(merged, v.Settings)
		if clash != "" {
			return Settings{}, diag.At(f.recipe.index.At("variants[%d]", i), "two settings for %s where %v", clash, v.When).
				WithHint("a key has one value in a cell: remove it from the recipe, and set it in variants that together cover every cell")
		}
		merged = both
	}
	f.made[string(holding)] = merged
	return merged, nil
}
