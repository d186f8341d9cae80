package assemble

import (
	"context"
	"errors"
	"slices"

	"builder/internal/base/diag"
	"builder/internal/plan/lock"
)

// A Coverage lists the missing pins of cells.
type Coverage struct {
	Unstated []Unstated
	Lacks    []string // all other missing pins, in words, each once
}

// Unstated is a fact that no file or index states, and the number of cells that need
// it. A registry or repository must be queried for it.
type Unstated struct {
	Why   string `json:"why"`
	Cells int    `json:"cells"`
}

// Cover checks which cells of a recipe, with their input cells, are locked.
func (a *Assembler) Cover(ctx context.Context, recipe string, drafts []lock.Draft) (Coverage, error) {
	var c Coverage
	f, err := a.Locks.Read(recipe)
	if err != nil {
		return c, err
	}
	if lacks := f.Missing(drafts).Else(); !lacks.None() {
		c.Lacks = []string{lacks.String()}
	}
	var errs []error
	pins := lock.NewPins(f, "")
	for _, d := range drafts {
		missing := pins.Missing(d)
		_, _, err := a.Inputs(ctx, d)
		if err != nil && diag.CodeOf(err) != diag.Drift {
			errs = append(errs, err)
		}
		c.note(missing, err)
	}
	return c, errors.Join(errs...)
}

// note records the pins missing for a cell or its input cells.
func (c *Coverage) note(missing lock.Missing, input error) {
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
