package app

import (
	"slices"

	"builder/internal/app/catalogue"
	"builder/internal/plan/recipe"
)

// ProvenCells returns the ids of a recipe's cells that were ever built and gated, sorted,
// and the day of the last build.
func ProvenCells(cat catalogue.Catalogue, r *recipe.Recipe) (built []string, last string, err error) {
	done, err := cat.Proven()
	for id, p := range done {
		if p.Recipe == r.Name {
			built, last = append(built, id), max(last, p.Day)
		}
	}
	slices.Sort(built)
	return built, last, err
}
