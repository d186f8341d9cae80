package show

import (
	"context"

	"builder/internal/app"
	"builder/internal/app/assemble"
	"builder/internal/app/catalogue"
	"builder/internal/plan/recipe"
	"builder/internal/view/term"
)

// Locked prints the number of locked cells of a recipe and the needs of the others.
func Locked(ctx context.Context, out term.Printer, asm *assemble.Assembler, r *recipe.Recipe) {
	c, err := asm.CoverAll(ctx, r)
	if err != nil {
		out.Note("cannot find the locked cells of %s: %v", r.Name, err)
		return
	}
	out.Say("\nlocked: %d of %d cells", c.Locked, c.Cells)
	for _, u := range c.Unstated {
		out.Say("  %d need %s: `%s --all`", u.Cells, u.Why, asm.Locks.PinCommand(r.Name, nil))
	}
	if len(c.Lacks) > 0 {
		out.Say("  pin the others with `%s --all`", asm.Locks.PinCommand(r.Name, nil))
	}
}

// Proven prints the number of built and gated cells of a recipe, the day of the last
// build, and with each also the cells.
func Proven(out term.Printer, cat catalogue.Catalogue, r *recipe.Recipe, each bool) error {
	built, last, err := app.ProvenCells(cat, r)
	if err != nil {
		return err
	}
	if len(built) == 0 {
		out.Say("proven: no build of a cell is recorded yet\n")
		return nil
	}
	out.Say("proven: %d cells were built and gated, the last on %s", len(built), last)
	for _, id := range built {
		if each {
			out.Say("  %s", id)
		}
	}
	out.Say("")
	return nil
}
