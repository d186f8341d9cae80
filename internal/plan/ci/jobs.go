package ci

import (
	"fmt"
	"maps"
	"slices"

	"builder/internal/base/shell"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
)

// A MatrixRequest selects the cells for jobs.
type MatrixRequest struct {
	Recipes  []*recipe.Recipe
	Filter   matrix.Filter
	All      bool // leave every unnamed axis open
	Condense bool // keep a few representative cells
}

// Jobs returns the jobs of the chosen cells of all recipes, before they are split into
// shards. It notes requested values without a cell.
func Jobs(cat catalogue.Catalogue, r MatrixRequest, note func(string, ...any)) ([]Job, error) {
	jobs := []Job{}
	for _, of := range r.Recipes {
		cells, _, err := matrix.Expand(of, OpenAxes(of, r.Filter, r.All))
		if err != nil {
			return nil, err
		}
		for _, p := range Absent(of, r.Filter, cells) {
			note("no cell has %s %s: %s prints the reason", p.Axis, p.Value, cat.Commands(askWhy(of, r.Filter, p)))
		}
		if r.Condense {
			if cells, err = CondenseCells(cat, cells, nil); err != nil {
				return nil, err
			}
		}
		for _, cell := range cells {
			job, err := NewJob(cell)
			if err != nil {
				return nil, err
			}
			jobs = append(jobs, atSite(job, cat.Site))
		}
	}
	return jobs, nil
}

// askWhy returns the command that plans a value together with the other named axes.
func askWhy(of *recipe.Recipe, filter matrix.Filter, p Pair) string {
	args := []string{"builder", "plan", of.Name}
	for _, axis := range of.AxisNames() {
		switch value, named := filter[axis]; {
		case axis == p.Axis:
			args = append(args, "--"+axis, p.Value)
		case named:
			args = append(args, "--"+axis, value)
		}
	}
	return "`" + shell.Line(args...) + "`"
}

// atSite adds --recipes to a job, which then finds the site's recipes.
func atSite(j Job, site string) Job {
	if site != "" {
		j.Flags = slices.Insert(slices.Clone(j.Flags), 1, "--recipes", site)
	}
	return j
}

// OpenAxes adds every missing axis to a filter, if all is set or the filter is empty.
func OpenAxes(r *recipe.Recipe, filter matrix.Filter, all bool) matrix.Filter {
	if len(filter) > 0 && !all {
		return filter
	}
	opened := matrix.Everything(r)
	maps.Copy(opened, filter)
	return opened
}

// CondenseCells keeps a few representative cells of one recipe, as [Condense] does.
func CondenseCells(cat catalogue.Catalogue, cells []matrix.Cell, proven map[string]bool) ([]matrix.Cell, error) {
	points, err := Points(cat, cells)
	if err != nil {
		return nil, err
	}
	few := Condense(points, cat.Patches[cells[0].Recipe.Name], proven)
	kept := make([]matrix.Cell, len(few))
	for i, p := range few {
		kept[i] = p.Cell
	}
	return kept, nil
}

// Points adds the facts stated by their images to cells.
func Points(cat catalogue.Catalogue, cells []matrix.Cell) ([]Point, error) {
	points := make([]Point, len(cells))
	for i, cell := range cells {
		facts, err := lock.Facts(cell, cat.LockInputs())
		if err != nil {
			return nil, fmt.Errorf("condensing the matrix of %s: %w", cell.Recipe.Name, err)
		}
		points[i] = Point{Cell: cell, Facts: facts}
	}
	return points, nil
}
