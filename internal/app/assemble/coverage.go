package assemble

import (
	"context"
	"errors"
	"slices"

	"builder/internal/base/diag"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
)

// A Coverage counts the locked cells and lists the missing pins of the others.
type Coverage struct {
	Cells    int
	Locked   int
	Unstated []Unstated
	Lacks    []string // all other missing pins, in words, each once
}

// Unstated is a fact that no file or index states, and the number of cells that need
// it. A registry or repository must be queried for it.
type Unstated struct {
	Why   string `json:"why"`
	Cells int    `json:"cells"`
}

// CoverAll applies [Assembler.Cover] to every cell of a recipe.
func (a *Assembler) CoverAll(ctx context.Context, r *recipe.Recipe) (Coverage, error) {
	drafts, _, err := Choose(a.Locks.Catalogue, r, matrix.Everything(r))
	if err != nil {
		return Coverage{}, err
	}
	return a.Cover(ctx, r.Name, drafts)
}

// Cover checks which cells of a recipe, with their input cells, are locked.
func (a *Assembler) Cover(ctx context.Context, recipe string, drafts []lock.Draft) (Coverage, error) {
	c := Coverage{Cells: len(drafts)}
	f, err := a.Locks.Read(recipe)
	if err != nil {
		return c, err
	}
	if lacks := f.Missing(drafts).Else(); !lacks.None() {
		c.Lacks = []string{lacks.String()}
	}
	var errs []error
	for _, d := range drafts {
		missing := f.Missing([]lock.Draft{d})
		_, err := a.Inputs(ctx, d, &lock.Entry{})
		if err != nil && diag.CodeOf(err) != diag.Drift {
			errs = append(errs, err)
		}
		c.note(missing, err)
	}
	return c, errors.Join(errs...)
}

// note counts a cell as locked, or records the pins missing for it or its input cells.
func (c *Coverage) note(missing lock.Missing, input error) {
	if missing.None() && input == nil {
		c.Locked++
		return
	}
	for _, why := range missing.Unstated() {
		i := slices.IndexFunc(c.Unstated, func(u Unstated) bool { return u.Why == why })
		if i < 0 {
			i, c.Unstated = len(c.Unstated), append(c.Unstated, Unstated{Why: why})
		}
		c.Unstated[i].Cells++
	}
	if input != nil && !slices.Contains(c.Lacks, input.Error()) {
		c.Lacks = append(c.Lacks, input.Error())
	}
}
