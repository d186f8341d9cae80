package build

import (
	"context"
	"path"
	"slices"

	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/files/wheel"
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
	built, err := builtIn()
	if err != nil {
		return err
	}
	if err := assemble.Unaccepted(ctx, &assemble.Assembler{Locks: built.Locks(""), Revision: revision}, entries, c.Accept); err != nil {
		return err
	}
	r, err := recipe.Find(built.Recipes, c.Recipe.Name)
	if err != nil || accepts(c.Accept, c.Recipe.Name) {
		return nil // a recipe of the site's own, or an accepted one
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

func accepts(accept []string, recipe string) bool {
	return slices.Contains(accept, "all") || slices.Contains(accept, recipe)
}

// builtIn reads builder's own data, without a site.
func builtIn() (catalogue.Catalogue, error) {
	return catalogue.Load("", catalogue.Names{Gates: gate.Promises()})
}

// A claimingEngine builds cells of a site. Files of a recipe that builder does not have
// are refused if they have names of builder's recipes, whatever the recipe promises.
type claimingEngine struct {
	run.Engine
	accept []string
}

func (c claimingEngine) Build(ctx context.Context, job run.Job, events run.Events, look run.Look) error {
	return c.Engine.Build(ctx, job, events, func(ctx context.Context, built run.Built) error {
		if err := c.claims(job.Entry, built); err != nil {
			return err
		}
		return look(ctx, built)
	})
}

// claims returns an error for files with names of builder's recipes.
func (c claimingEngine) claims(e lock.Entry, built run.Built) error {
	own, err := builtIn()
	if err != nil {
		return err
	}
	if _, err := recipe.Find(own.Recipes, e.Recipe); err == nil || accepts(c.accept, e.Recipe) {
		return nil
	}
	var names []string
	for _, a := range built.Artifacts {
		names = append(names, a.Name)
		if path.Ext(a.Name) != ".whl" {
			continue
		}
		w, err := wheel.Open(a.Path)
		if err != nil {
			return err
		}
		names = append(names, w.Installs().Packages...)
		names = append(names, w.Installs().Programs...)
		for _, f := range w.Files {
			if wheel.IsLibrary(f.Name) {
				names = append(names, f.Name)
			}
		}
		if err := w.Close(); err != nil {
			return err
		}
	}
	if name := assemble.Claimed(own.Recipes, names); name != "" {
		return diag.Errorf(diag.Gate, "%s made %s, which has a name of builder's own recipes", e.ID, name).
			WithHint("no gate can ask for all that it may do: read the recipe, and add --accept %s or set BUILDER_ACCEPT", e.Recipe)
	}
	return nil
}
