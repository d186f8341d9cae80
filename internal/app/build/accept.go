package build

import (
	"context"
	"slices"

	"builder/internal/base/diag"
	"builder/internal/gates/gate"
	"builder/internal/plan/assemble"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
)

// acceptSite refuses entries that a site changed, and a choice of other cells than
// builder's recipe would choose, unless the user accepts them.
func (c *cellRun) acceptSite(ctx context.Context, drafts []lock.Draft, entries []lock.Entry, revision string) error {
	built, err := catalogue.Load("", catalogue.Names{Gates: gate.Promises()})
	if err != nil {
		return err
	}
	if err := assemble.Unaccepted(ctx, &assemble.Assembler{Locks: built.Locks(""), Revision: revision}, entries, c.Accept); err != nil {
		return err
	}
	r, err := recipe.Find(built.Recipes, c.Recipe.Name)
	if err != nil || slices.Contains(c.Accept, "all") || slices.Contains(c.Accept, r.Name) {
		return nil // all that it chooses is accepted
	}
	cells, _, err := matrix.Expand(r, c.Filter)
	ours := func(d lock.Draft) bool {
		return slices.ContainsFunc(cells, func(own matrix.Cell) bool { return own.ID == d.Cell.ID })
	}
	if i := slices.IndexFunc(drafts, func(d lock.Draft) bool { return !ours(d) }); err != nil || i >= 0 {
		return diag.Errorf(diag.Usage, "the site chooses %s, and builder's own recipe %s chooses others of these axes", drafts[max(i, 0)].Cell.ID, r.Name).
			WithHint("name the cell that you want by its axes, or add --accept %s", r.Name)
	}
	return nil
}
