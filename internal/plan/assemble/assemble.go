// Package assemble turns chosen cells of a catalogue into locked entries: the cells of a
// recipe, preceded by their input cells of other recipes.
package assemble

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"builder/internal/base/diag"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
)

// An input is an input cell with its own input cells.
type input struct {
	entries []lock.Entry // input cells first, the cell last
	key     string       // of the cell
}

// Choose expands the matrix and drafts every cell of it.
func Choose(cat catalogue.Catalogue, r *recipe.Recipe, chosen matrix.Filter) ([]lock.Draft, error) {
	cells, _, err := matrix.Expand(r, chosen)
	if err != nil {
		return nil, err
	}
	return Draft(cat, cells)
}

// Draft drafts cells.
func Draft(cat catalogue.Catalogue, cells []matrix.Cell) ([]lock.Draft, error) {
	var drafts []lock.Draft
	var errs []error
	for _, cell := range cells {
		d, err := lock.NewDraft(cell, cat.LockInputs())
		errs = append(errs, err)
		drafts = append(drafts, d)
	}
	return drafts, errors.Join(errs...)
}

// An Assembler makes entries from drafts, and from their input cells. It makes each
// input cell once, however many cells need it.
type Assembler struct {
	Locks    catalogue.Locks
	Revision string // of the build steps
	Forbids  string // the flag that forbids resolving, or ""

	resolver *lock.Resolver // nil resolves nothing
	note     func(format string, args ...any)
	made     map[string]input // by recipe and axes
}

// Resolving makes the assembler resolve the pins missing from a lock and write them to it.
// note prints a line for the user.
func (a *Assembler) Resolving(r lock.Resolver, note func(format string, args ...any)) *Assembler {
	a.resolver, a.note = &r, note
	return a
}

// Entries returns the entries of a recipe's drafts. Their input cells come first, each
// once. If allowed, it resolves pins needed by drafts and missing from the lock, and writes
// them to it.
func (a *Assembler) Entries(ctx context.Context, r *recipe.Recipe, chosen matrix.Filter, drafts []lock.Draft) ([]lock.Entry, error) {
	f, err := a.Locks.Read(r.Name)
	if err != nil {
		return nil, err
	}
	var missing lock.Missing
	if a.resolver != nil && a.Forbids == "" {
		missing = f.Missing(drafts)
	}
	if !missing.None() {
		a.note("resolving the missing pins of the lock of %s: %s", r.Name, missing)
		pins, err := a.resolver.Resolve(ctx, r.Name, missing)
		if err != nil {
			return nil, err
		}
		done, err := a.Locks.Update(r.Name, catalogue.Update{Pins: pins})
		if done.Wrote {
			a.note("wrote %s", done.Path)
		}
		if err != nil {
			return nil, err
		}
		f = done.After
	}
	entries, err := lock.Assemble(drafts, f, a.Revision)
	if err != nil {
		return nil, a.HintPins(err, r.Name, chosen)
	}
	var before []lock.Entry
	for i, d := range drafts {
		inputs, needed, err := a.Inputs(ctx, d)
		if err != nil {
			return nil, fmt.Errorf("cell %s: %w", d.Cell.ID, err)
		}
		entries[i].Inputs, before = inputs, append(before, needed...)
	}
	return OneOfEach(append(before, entries...)), nil
}

// Resolves reports whether Entries resolves pins of these drafts.
func (a *Assembler) Resolves(recipe string, drafts []lock.Draft) (bool, error) {
	if a.resolver == nil || a.Forbids != "" {
		return false, nil
	}
	f, err := a.Locks.Read(recipe)
	return err == nil && !f.Missing(drafts).None(), err
}

// HintPins adds the command that pins the chosen cells to an error about missing pins.
func (a *Assembler) HintPins(err error, recipe string, chosen matrix.Filter) error {
	e, ok := errors.AsType[*diag.Error](err)
	if !ok || e.Code != diag.Drift {
		return err
	}
	hint := "run `" + a.Locks.PinCommand(recipe, chosen) + "`"
	if a.Forbids != "" {
		hint += ", or allow names to be resolved with " + a.Forbids + "=false"
	}
	return e.WithHint("%s", hint)
}

// Inputs returns the inputs of a cell and the entries that make them.
func (a *Assembler) Inputs(ctx context.Context, d lock.Draft) (inputs []lock.Input, before []lock.Entry, err error) {
	for _, in := range d.Settings.Inputs {
		made, err := a.input(ctx, in)
		if err != nil {
			return nil, nil, fmt.Errorf("input %s: %w", in.Recipe, err)
		}
		last := made.entries[len(made.entries)-1]
		inputs = append(inputs, lock.Input{Recipe: in.Recipe, ID: last.ID, Key: made.key, Axes: last.Axes})
		before = append(before, made.entries...)
	}
	return inputs, before, nil
}

// input makes the entry of the one cell named by an input. Its own input cells come
// first, the cell last.
func (a *Assembler) input(ctx context.Context, in recipe.Input) (input, error) {
	name := in.Recipe + " " + matrix.Pairs(in.Axes)
	if made, ok := a.made[name]; ok {
		return made, nil
	}
	cell, err := matrix.Only(a.Locks.Recipes, in)
	if err != nil {
		return input{}, err
	}
	d, err := lock.NewDraft(cell, a.Locks.LockInputs())
	if err != nil {
		return input{}, err
	}
	entries, err := a.Entries(ctx, cell.Recipe, in.Axes, []lock.Draft{d})
	if err != nil {
		return input{}, err
	}
	if a.made == nil {
		a.made = map[string]input{}
	}
	made := input{entries, entries[len(entries)-1].Key()}
	a.made[name] = made
	return made, nil
}

// OneOfEach keeps the first entry of each key.
func OneOfEach(entries []lock.Entry) []lock.Entry {
	seen := map[string]bool{}
	return slices.DeleteFunc(entries, func(e lock.Entry) bool {
		key := e.Key()
		defer func() { seen[key] = true }()
		return seen[key]
	})
}

// Needed drops input cells needed by known cells only. The last n entries are the
// requested cells; Needed keeps all of them.
func Needed(entries []lock.Entry, n int, known func(lock.Entry) bool) []lock.Entry {
	wanted := map[string]bool{}
	var kept []lock.Entry
	for i, e := range slices.Backward(entries) {
		if i < len(entries)-n && !wanted[e.Key()] {
			continue
		}
		kept = append(kept, e)
		if !known(e) {
			for _, in := range e.Inputs {
				wanted[in.Key] = true
			}
		}
	}
	slices.Reverse(kept)
	return kept
}
