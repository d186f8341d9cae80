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

// A Coverage says how many cells are locked, and what the others lack.
type Coverage struct {
	Cells    int
	Locked   int
	Unstated []Unstated
	Lacks    []string // everything else, in words, each once
}

// Unstated is what one place alone can tell, and how many cells need it.
type Unstated struct {
	Why   string `json:"why"`
	Cells int    `json:"cells"`
}

// CoverAll is [Assembler.Cover] of every cell of a recipe.
func (a *Assembler) CoverAll(ctx context.Context, r *recipe.Recipe) (Coverage, error) {
	drafts, _, err := Choose(a.Locks.Catalogue, r, matrix.Everything(r))
	if err != nil {
		return Coverage{}, err
	}
	return a.Cover(ctx, r.Name, drafts)
}

// Cover looks at cells of a recipe and at what goes into them.
func (a *Assembler) Cover(ctx context.Context, recipe string, drafts []lock.Draft) (Coverage, error) {
	c := Coverage{Cells: len(drafts)}
	f, err := a.Locks.Read(recipe)
	if err != nil {
		return c, err
	}
	if lacks := f.Missing(drafts).Else(); !lacks.None() {
		c.Lacks = []string{lacks.String()}
	}
	var faults []error
	for _, d := range drafts {
		missing := f.Missing([]lock.Draft{d})
		_, err := a.Inputs(ctx, d, &lock.Entry{})
		if err != nil && diag.CodeOf(err) != diag.Drift {
			faults = append(faults, err)
		}
		c.note(missing, err)
	}
	return c, errors.Join(faults...)
}

// note adds a cell that lacks something of its own, or of what goes into it.
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
