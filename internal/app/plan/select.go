package plan

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"

	"builder/internal/base/shell"
	"builder/internal/plan/assemble"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/ci"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/proven"
	"builder/internal/plan/recipe"
	"builder/internal/plan/version"
)

// A Selection chooses cells of a recipe.
type Selection struct {
	Recipe *recipe.Recipe
	Filter matrix.Filter
	By     []Through // selectors of the recipe that chose values of the filter
	// Unproven leaves few cells, which hold the values of the others that no proven cell of
	// today's inputs holds.
	Unproven bool

	asked matrix.Filter     // as the user wrote it
	given map[string]string // selectors, likewise
}

// Under returns the same request of another recipe, by its own selectors and axes.
func (of Selection) Under(r *recipe.Recipe) (Selection, error) {
	if of.asked == nil {
		return Selection{Recipe: r, Filter: of.Filter}, nil
	}
	own, err := Select(r, of.asked, of.given)
	if of.Unproven {
		own = own.Covering()
	}
	return own, err
}

// Covering returns the selection of those cells only that hold what is unproven. An axis
// that the user did not choose has all its values.
func (of Selection) Covering() Selection {
	of.Filter, of.Unproven = ci.OpenAxes(of.Recipe, of.Filter, true), true
	return of
}

// Through is a selector with its value and the values of axes that it chose.
type Through struct {
	Name    string            `json:"name"`
	Value   string            `json:"value"`
	Axes    map[string]string `json:"axes"`
	Because string            `json:"because"`
	Source  string            `json:"source"`
}

// Select applies the selectors given by name, such as torch: 2.11, to the filter. A value
// of the filter that is finer than those of its axis becomes the value that serves it.
// Axis by axis, latest and the first numbers of several values become the newest of them
// with a cell.
func Select(r *recipe.Recipe, filter matrix.Filter, given map[string]string) (Selection, error) {
	of := Selection{Recipe: r, Filter: maps.Clone(filter), asked: filter, given: given}
	for _, axis := range r.Axes {
		text := filter[axis.Name]
		if value, finer := axis.Coarser(text); finer { // 12.8 becomes 12
			of.Filter[axis.Name] = value
			of.By = append(of.By, Through{axis.Name, text, map[string]string{axis.Name: value}, axis.Finer.Because, axis.Finer.Source})
		}
	}
	var errs []error
	for _, s := range r.Selectors {
		text, is := given[s.Name]
		if !is {
			continue
		}
		v, err := s.Choose(text)
		if err != nil {
			errs = append(errs, matrix.FlagError(s.Name, err))
			continue
		}
		axes, err := s.Narrow(v, r.Axes, of.Filter)
		errs = append(errs, err)
		maps.Copy(of.Filter, axes)
		of.By = append(of.By, Through{s.Name, v.Value, axes, s.Because, s.Source})
	}
	for _, axis := range r.Axes {
		values := version.Candidates(of.Filter[axis.Name], axis.Values)
		for _, value := range values {
			other := maps.Clone(of.Filter)
			maps.DeleteFunc(other, func(_, text string) bool { return text == version.Latest })
			other[axis.Name] = value
			if matrix.Has(r, other) {
				values = []string{value}
				break
			}
		}
		if len(values) > 0 {
			of.Filter[axis.Name] = values[0] // without a cell the first, and the refusal names the reasons
		}
	}
	return of, errors.Join(errs...)
}

// Drafts drafts the cells of a selection.
func Drafts(ctx context.Context, s Setup, of Selection) ([]lock.Draft, error) {
	cells, _, err := matrix.Expand(of.Recipe, of.Filter)
	if err == nil && of.Unproven {
		cells, err = unproven(ctx, s, of, cells)
	}
	if err != nil {
		return nil, err
	}
	return assemble.Draft(s.Catalogue, cells)
}

// unproven returns few of the cells, which hold the values that no proven cell of today's
// inputs holds.
func unproven(ctx context.Context, s Setup, of Selection, cells []matrix.Cell) ([]matrix.Cell, error) {
	current, err := current(ctx, s, of, cells)
	if err != nil {
		return nil, err
	}
	return ci.CondenseCells(s.Catalogue, cells, current)
}

// current returns the ids of the cells whose record has the key of today's inputs.
func current(ctx context.Context, s Setup, of Selection, cells []matrix.Cell) (map[string]bool, error) {
	done, err := s.Catalogue.Proven()
	if err != nil {
		return nil, err
	}
	recorded := slices.DeleteFunc(slices.Clone(cells), func(c matrix.Cell) bool { return !done.Standing(c.ID, "").Built })
	explained, err := explainCells(ctx, s, of, recorded)
	current := map[string]bool{}
	for _, c := range explained {
		current[c.ID] = c.Proven.Current
	}
	return current, err
}

// Stale returns the recorded cells of a recipe whose inputs have changed since. Each has the
// command that builds and records it again, or says that the matrix has it no more.
func Stale(ctx context.Context, s Setup, r *recipe.Recipe) (map[string]string, error) {
	every, stale := matrix.WithOptions(r), map[string]string{}
	cells, _, err1 := matrix.Expand(r, every)
	current, err2 := current(ctx, s, Selection{Recipe: r, Filter: every}, cells)
	done, err3 := s.Catalogue.Proven()
	for id, proof := range done {
		if proof.Recipe == r.Name && !current[id] {
			stale[id] = "the matrix has no such cell any more"
		}
	}
	errs := []error{err1, err2, err3}
	for _, c := range cells {
		if stale[c.ID] != "" {
			job, err := ci.NewJob(c)
			stale[c.ID], errs = renewal(s.Catalogue, job, done[c.ID].Tests), append(errs, err)
		}
	}
	return stale, errors.Join(errs...)
}

// renewal returns the command that builds a cell with a level of tests, and records it.
func renewal(cat catalogue.Catalogue, job ci.Job, tests string) string {
	run := append([]string{"builder", "run"}, job.Flags...) // of a job, the first is the recipe
	if cat.Site != "" {
		run = slices.Insert(run, 3, "--recipes", cat.Site)
	}
	if tests != "" && tests != proven.None {
		run = append(run, "--tests", tests)
	}
	record := shell.Line("builder", "verify", filepath.Join("out", job.ID), "--record", filepath.Join(cat.Site, "recipes", proven.Name))
	return shell.Line(run...) + " && " + record
}
