package build

import (
	"context"
	"slices"

	"builder/internal/base/diag"
	"builder/internal/base/size"
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
	if slices.Contains(c.Accept, "all") {
		return nil
	}
	built, err := catalogue.Load("", catalogue.Names{Gates: gate.Promises()})
	if err != nil {
		return err
	}
	if err := assemble.Unaccepted(ctx, &assemble.Assembler{Locks: built.Locks(""), Revision: revision}, entries, c.Accept); err != nil {
		return err
	}
	r, err := recipe.Find(built.Recipes, c.Recipe.Name)
	if err != nil || slices.Contains(c.Accept, r.Name) {
		return nil // all that it chooses is accepted
	}
	own, err := c.Selection.Under(r)
	if err != nil {
		return err
	}
	cells, _, err := matrix.Expand(r, own.Filter)
	if err != nil {
		return err
	}
	missing := slices.ContainsFunc(drafts, func(d lock.Draft) bool {
		return !slices.ContainsFunc(cells, func(ours matrix.Cell) bool { return ours.ID == d.Cell.ID })
	})
	if missing || len(cells) != len(drafts) && !c.Unproven {
		return diag.Errorf(diag.Usage, "the site chooses %s of %s, and builder's own recipe chooses others", size.Count(len(drafts), "cell"), r.Name).
			WithHint("compare `builder plan %s` with and without --recipes, name the cell that you want by all its axes, or add --accept %s", r.Name, r.Name)
	}
	return nil
}
