package app

import (
	"builder/internal/app/catalogue"
	"builder/internal/plan/recipe"
)

// ProvenCells returns the number of a recipe's cells that were ever built and gated,
// and the day of the last build.
func ProvenCells(cat catalogue.Catalogue, r *recipe.Recipe) (built int, last string, err error) {
	done, err := cat.Proven()
	for _, p := range done {
		if p.Recipe == r.Name {
			built, last = built+1, max(last, p.Day)
		}
	}
	return built, last, err
}
