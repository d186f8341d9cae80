package show

import (
	"builder/internal/plan/catalogue"
	"builder/internal/plan/recipe"
	"builder/internal/view/term"
)

// Proven prints the number of built and gated cells of a recipe, the day of the last
// build, and with each also the cells.
func Proven(out term.Printer, cat catalogue.Catalogue, r *recipe.Recipe, each bool) error {
	built, last, err := cat.ProvenCells(r)
	if err != nil {
		return err
	}
	if len(built) == 0 {
		out.Say("\nproven: no build of a cell is recorded yet\n")
		return nil
	}
	out.Say("\nproven: %d cells were built and gated, the last on %s", len(built), last)
	for _, id := range built {
		if each {
			out.Say("  %s", id)
		}
	}
	out.Say("")
	return nil
}
