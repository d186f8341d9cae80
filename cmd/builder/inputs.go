package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"builder/internal/diag"
	"builder/internal/lock"
	"builder/internal/matrix"
	"builder/internal/recipe"
)

// assembler makes entries of drafts, and of the cells of other recipes that go
// into them. Those are made once however many cells need them.
type assembler struct {
	catalogue
	options
	// read returns the lock of a recipe, with what the drafts need as far as it
	// may be resolved.
	read func(ctx context.Context, recipe string, drafts []lock.Draft) (lock.File, error)
	made map[string][]lock.Entry // by recipe and axes: the cell last, before it what goes into it
}

func newAssembler(cat catalogue, o options, read func(context.Context, string, []lock.Draft) (lock.File, error)) *assembler {
	return &assembler{cat, o, read, map[string][]lock.Entry{}}
}

// entries returns the entries of drafts of a recipe. What goes into one of them
// stands before all of them, each once.
func (a *assembler) entries(ctx context.Context, r *recipe.Recipe, filter matrix.Filter, drafts []lock.Draft) ([]lock.Entry, error) {
	f, err := a.read(ctx, r.Name, drafts)
	if err != nil {
		return nil, err
	}
	entries, err := assemble(a.catalogue, a.options, r.Name, filter, drafts, f)
	if err != nil {
		return nil, err
	}
	var before []lock.Entry
	for i, d := range drafts {
		needed, err := a.inputs(ctx, d, &entries[i])
		if err != nil {
			return nil, fmt.Errorf("cell %s: %w", d.Cell.ID, err)
		}
		before = append(before, needed...)
	}
	return oneOfEach(append(before, entries...)), nil
}

// inputs makes the entries that go into a cell and notes them in its own.
func (a *assembler) inputs(ctx context.Context, d lock.Draft, e *lock.Entry) ([]lock.Entry, error) {
	var before []lock.Entry
	for _, in := range d.Settings.Inputs {
		made, err := a.input(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("input %s: %w", in.Recipe, err)
		}
		last := made[len(made)-1]
		e.Inputs = append(e.Inputs, lock.Input{Recipe: in.Recipe, ID: last.ID, Key: last.Key(), Axes: last.Axes})
		before = append(before, made...)
	}
	return before, nil
}

// input makes the entry of the one cell that an input names.
func (a *assembler) input(ctx context.Context, in recipe.Input) ([]lock.Entry, error) {
	name := in.Recipe + " " + pairs(in.Axes)
	if made, ok := a.made[name]; ok {
		return made, nil
	}
	r, err := recipe.Find(a.recipes, in.Recipe)
	if err != nil {
		return nil, err
	}
	cells, _, err := matrix.Expand(r, in.Axes)
	if err != nil {
		return nil, err
	}
	if len(cells) != 1 {
		return nil, diag.Errorf(diag.Usage, "%s name %d cells, an input is one", pairs(in.Axes), len(cells))
	}
	d, err := lock.NewDraft(cells[0], a.lockInputs())
	if err != nil {
		return nil, err
	}
	made, err := a.entries(ctx, r, in.Axes, []lock.Draft{d})
	if err == nil {
		a.made[name] = made
	}
	return made, err
}

// oneOfEach keeps the first of the entries with one key.
func oneOfEach(entries []lock.Entry) []lock.Entry {
	seen := map[string]bool{}
	return slices.DeleteFunc(entries, func(e lock.Entry) bool {
		key := e.Key()
		defer func() { seen[key] = true }()
		return seen[key]
	})
}

// needed leaves out what goes only into cells that are known already; the last n
// entries are those that were asked for.
func needed(entries []lock.Entry, n int, known func(lock.Entry) bool) []lock.Entry {
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

// checkInputs refuses inputs of recipes that do not exist, and circles.
func (c *catalogue) checkInputs() error {
	needs := map[string][]string{}
	var faults []error
	for _, r := range c.recipes {
		needs[r.Name] = r.InputRecipes()
		for _, name := range needs[r.Name] {
			if _, err := recipe.Find(c.recipes, name); err != nil {
				faults = append(faults, fmt.Errorf("recipe %s: input: %w", r.Name, err))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		if circle := circleFrom(needs, name, nil); circle != nil {
			faults = append(faults, diag.Errorf(diag.Usage, "recipe %s is its own input: %s", name, strings.Join(circle, ", ")))
		}
	}
	return errors.Join(faults...)
}

// circleFrom returns a way from the first name of the path back to it.
func circleFrom(needs map[string][]string, name string, path []string) []string {
	if slices.Contains(path, name) {
		if path[0] == name {
			return append(path, name)
		}
		return nil
	}
	path = append(slices.Clone(path), name)
	for _, next := range needs[name] {
		if circle := circleFrom(needs, next, path); circle != nil {
			return circle
		}
	}
	return nil
}
