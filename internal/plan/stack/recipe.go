package stack

import (
	"errors"
	"fmt"
	"slices"

	"builder/internal/base/diag"
	"builder/internal/base/subst"
	"builder/internal/files/inspect"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
)

// A Catalogue holds the recipes and profiles that stacks may name.
type Catalogue struct {
	Recipes []*recipe.Recipe
	// Profile returns the text of the one combination of a profile with these axes.
	Profile func(name string, axes map[string]string) (string, error)
}

// Recipe returns the stack as a recipe with one cell. Its inputs are the cells of the
// parts, with a value for every axis. Its axes are those in s.Agree. Recipe returns all
// errors together: parts that do not select exactly one cell, and parts whose axes
// disagree.
func (s *Stack) Recipe(cat Catalogue) (*recipe.Recipe, error) {
	var parts []Part
	var errs []error
	r := &recipe.Recipe{
		Name: s.FullName(), Summary: s.Summary, ID: s.FullName(),
		Settings: recipe.Settings{
			From: recipe.Origin{Kind: recipe.Cells}, Image: s.Image, Runtime: s.Image,
			Requires: recipe.Requirements{Run: s.Extra},
			Expect:   recipe.Expect{Wheelhouse: &recipe.Wheelhouse{Format: Format, Agree: s.Agree, Loads: s.Loads, Provided: s.Provided}},
		},
	}
	for i, p := range s.Parts {
		cell, err := matrix.Only(cat.Recipes, p)
		if err != nil {
			errs = append(errs, s.placed(err, "parts[%d]", i))
			continue
		}
		project, err := subst.Expand(cell.Recipe.Source.Project, cell.Names)
		errs = append(errs, err)
		parts = append(parts, Part{Name: cell.ID, Axes: cell.Axes})
		r.Requires.Without = append(r.Requires.Without, project)
		r.Inputs = append(r.Inputs, recipe.Input{Recipe: p.Recipe, Axes: cell.Axes})
		r.Axes = s.axes(r.Axes, cell)
	}
	if s.Profile != nil {
		text, err := cat.Profile(s.Profile.Name, s.Profile.Axes)
		errs = append(errs, s.placed(err, "profile"))
		parts = append(parts, Part{Name: "profile " + s.Profile.Name, Axes: s.Profile.Axes})
		r.Expect.Wheelhouse.Profile = text
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, l := range s.Loads {
		r.Requires.Without = append(r.Requires.Without, l.Project)
	}
	for _, p := range s.Provided {
		r.Requires.Without = append(r.Requires.Without, p.Project)
	}
	return r, s.disagreements(parts)
}

// placed adds the position in the file to each error.
func (s *Stack) placed(err error, at string, args ...any) error {
	var errs []error
	for _, e := range diag.All(err) {
		errs = append(errs, diag.At(s.index.At(fmt.Sprintf(at, args...)), "%w", e.Err).WithHint("%s", e.Hint))
	}
	return errors.Join(errs...)
}

// axes adds the axes of a cell that are in s.Agree to the known ones.
func (s *Stack) axes(known []recipe.Axis, cell matrix.Cell) []recipe.Axis {
	for _, axis := range cell.Recipe.Axes {
		named := func(a recipe.Axis) bool { return a.Name == axis.Name }
		if slices.Contains(s.Agree, axis.Name) && !slices.ContainsFunc(known, named) {
			known = append(known, recipe.Axis{Name: axis.Name, About: axis.About, Values: []string{cell.Axes[axis.Name]}, Finer: axis.Finer})
		}
	}
	return known
}

// disagreements returns the errors detectable before a build.
func (s *Stack) disagreements(parts []Part) error {
	var errs []error
	for i, name := range s.Agree {
		at := s.index.At(fmt.Sprintf("agree[%d]", i))
		isAxis := slices.ContainsFunc(parts, func(p Part) bool { return p.Axes[name] != "" })
		if !isAxis && !slices.Contains(inspect.Names(), name) {
			errs = append(errs, diag.At(at, "%q is not an axis of a part or a fact about wheels", name).
				WithHint("%s", diag.DidYouMean(name, inspect.Names())))
		}
		if problem, _ := agree(name, parts); problem != "" {
			errs = append(errs, diag.At(at, "%s", problem).WithHint("give the parts axes that agree"))
		}
	}
	return errors.Join(errs...)
}
