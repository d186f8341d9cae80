package app

import (
	"builder/internal/app/catalogue"
	"builder/internal/plan/recipe"
)

// ProvenCells says how many cells of a recipe somebody built and gated, and on which day
// last.
func ProvenCells(cat catalogue.Catalogue, r *recipe.Recipe) (built int, last string, err error) {
	done, err := cat.Proven()
	for _, p := range done {
		if p.Recipe == r.Name {
			built, last = built+1, max(last, p.Day)
		}
	}
	return built, last, err
}
