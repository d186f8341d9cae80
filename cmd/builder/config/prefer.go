package config

import (
	"errors"
	"slices"

	"builder/internal/base/diag"
	"builder/internal/plan/recipe"
	"builder/internal/plan/version"
)

// Preferred returns recipes with the axis values of builder.yaml as their first
// preference. The values apply if the command line does not name the axis and if they
// are compatible.
func (c Config) Preferred(recipes []*recipe.Recipe) ([]*recipe.Recipe, error) {
	recipes = slices.Clone(recipes)
	var errs []error
	for _, p := range c.Preferences {
		r, err := recipe.Find(recipes, p.Recipe)
		if err != nil {
			errs = append(errs, diag.At(p.Pos, "%w", err))
			continue
		}
		liking, err := prefer(r, p)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		recipes[slices.Index(recipes, r)] = liking
	}
	return recipes, errors.Join(errs...)
}

// prefer returns a copy of a recipe with the preferred values first.
func prefer(r *recipe.Recipe, p Preference) (*recipe.Recipe, error) {
	axis, ok := r.Axis(p.Axis)
	if !ok {
		return nil, diag.At(p.Pos, "recipe %s has no axis %q", r.Name, p.Axis).WithHint("%s", diag.DidYouMean(p.Axis, r.AxisNames()))
	}
	first, err := version.Ranked(p.Value, axis.Values)
	if err != nil {
		return nil, diag.At(p.Pos, "%s: %w", p.Axis, err)
	}
	behind := slices.DeleteFunc(slices.Clone(axis.Values), func(v string) bool { return slices.Contains(first, v) })
	axis.Values, axis.Site = slices.Concat(first, behind), len(first)
	changed := *r
	changed.Axes = slices.Clone(r.Axes)
	i := slices.IndexFunc(changed.Axes, func(a recipe.Axis) bool { return a.Name == axis.Name })
	changed.Axes[i] = axis
	return &changed, nil
}
