package recipe

import (
	"maps"
	"slices"
)

// With returns the recipe with a further value of an axis, the least preferred one.
// released is the date of that version of the source, or "".
func (r *Recipe) With(axis, value, released string) (*Recipe, error) {
	wide := *r
	wide.Axes = slices.Clone(r.Axes)
	for i, a := range wide.Axes {
		if a.Name == axis {
			wide.Axes[i].Values = append(slices.Clone(a.Values), value)
		}
	}
	if released != "" {
		wide.Source.Released = maps.Clone(r.Source.Released)
		if wide.Source.Released == nil {
			wide.Source.Released = map[string]string{}
		}
		wide.Source.Released[value] = released
	}
	wide.when = nil
	return &wide, wide.evaluate()
}

// Everywhere returns the settings of the recipe and of all its variants.
func (r *Recipe) Everywhere() []Settings {
	all := []Settings{r.Settings}
	for _, v := range r.Variants {
		all = append(all, v.Settings)
	}
	return all
}
