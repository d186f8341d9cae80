// Package matrix expands a recipe into cells: points at which every axis has
// exactly one value. What a command line names is enumerated; what it leaves
// open falls to the first compatible values in the order of the recipe. Every
// combination that is left out carries the rule that excludes it.
package matrix

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"builder/internal/diag"
	"builder/internal/recipe"
	"builder/internal/subst"
	"builder/internal/version"
)

// A Cell is one point of the matrix of a recipe.
type Cell struct {
	Recipe *recipe.Recipe
	ID     string            // readable, unique within a matrix
	Axes   map[string]string // one value for each axis
	// Chosen names the axes whose value was chosen by preference.
	Chosen []string
}

// An Exclusion is a combination that was asked for and cannot be had. Axes holds
// the values that were asked for.
type Exclusion struct {
	Axes    map[string]string
	Because string
	Source  string
}

// Filter maps axes to what the command line says about them.
type Filter map[string]string

// Expand returns the cells that the filter asks for, sorted by id, and the
// combinations that it asks for and the recipe excludes. A filter that leaves
// no cell is an error that names every exclusion.
func Expand(r *recipe.Recipe, filter Filter) ([]Cell, []Exclusion, error) {
	s, err := newSearch(r, filter)
	if err != nil {
		return nil, nil, err
	}
	s.enumerate(0)
	if len(s.cells) == 0 {
		return nil, s.excluded, s.nothing()
	}
	slices.SortFunc(s.cells, func(a, b Cell) int { return strings.Compare(a.ID, b.ID) })
	return s.cells, s.excluded, s.err
}

// search is a walk over the axes: first those that the filter names, all of
// their values, then the others, the first compatible value of each.
type search struct {
	recipe   *recipe.Recipe
	order    []recipe.Axis // named axes first, each with the values that are left
	named    int
	rules    []rule
	point    map[string]string
	cells    []Cell
	excluded []Exclusion
	broken   *recipe.Rule // the rule that the walk met first below a named combination
	err      error
}

// rule is a compatibility rule with its constraints parsed once.
type rule struct {
	recipe.Rule
	when, needs map[string]version.Constraint
}

func newSearch(r *recipe.Recipe, filter Filter) (*search, error) {
	s := &search{recipe: r, point: map[string]string{}}
	var open []recipe.Axis
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(filter)) {
		if _, ok := r.Axis(name); !ok {
			faults = append(faults, diag.Errorf(diag.Usage, "recipe %s has no axis %q", r.Name, name).
				WithHint("%s", diag.DidYouMean(name, r.AxisNames())))
		}
	}
	for _, axis := range r.Axes {
		text, named := filter[axis.Name]
		if !named {
			open = append(open, axis)
			continue
		}
		values, err := version.Select(text, axis.Values)
		if err != nil {
			faults = append(faults, flagFault(axis.Name, err))
			continue
		}
		s.order = append(s.order, recipe.Axis{Name: axis.Name, Values: values})
	}
	s.named, s.order = len(s.order), append(s.order, open...)
	for _, written := range r.Compatible {
		parsed, err := parseRule(written)
		faults = append(faults, err)
		s.rules = append(s.rules, parsed)
	}
	return s, errors.Join(faults...)
}

// flagFault says which flag a fault is about and keeps its hint.
func flagFault(axis string, err error) error {
	fault := diag.Errorf(diag.Usage, "--%s: %w", axis, err)
	var inner *diag.Error
	if errors.As(err, &inner) {
		fault.Hint = inner.Hint
	}
	return fault
}

func parseRule(written recipe.Rule) (rule, error) {
	when, err1 := parseCondition(written.When)
	needs, err2 := parseCondition(written.Needs)
	return rule{written, when, needs}, errors.Join(err1, err2)
}

func parseCondition(c recipe.Condition) (map[string]version.Constraint, error) {
	parsed := make(map[string]version.Constraint, len(c))
	for name, text := range c {
		constraint, err := version.ParseConstraint(text)
		if err != nil {
			return nil, err
		}
		parsed[name] = constraint
	}
	return parsed, nil
}

// enumerate walks the named axes from the i-th on; at the end of each
// combination it completes the point or explains why it cannot.
func (s *search) enumerate(i int) {
	if i == s.named {
		s.broken = nil
		if !s.complete(i) {
			s.exclude()
		}
		return
	}
	for _, value := range s.order[i].Values {
		s.point[s.order[i].Name] = value
		s.enumerate(i + 1)
	}
	delete(s.point, s.order[i].Name)
}

// complete gives the axes from the i-th on their first compatible values.
func (s *search) complete(i int) bool {
	if broken := s.violated(); broken != nil {
		if s.broken == nil {
			s.broken = broken
		}
		return false
	}
	if i == len(s.order) {
		s.add()
		return true
	}
	axis := s.order[i]
	defer delete(s.point, axis.Name)
	for _, value := range axis.Values {
		s.point[axis.Name] = value
		if s.complete(i + 1) {
			return true
		}
	}
	return false
}

// violated returns the first rule that the point breaks with what is known of it.
func (s *search) violated() *recipe.Rule {
	for i := range s.rules {
		r := &s.rules[i]
		if s.known(r.when) && s.allowed(r.when) && !s.possible(r.needs) {
			return &r.Rule
		}
	}
	return nil
}

func (s *search) known(c map[string]version.Constraint) bool {
	for name := range c {
		if _, ok := s.point[name]; !ok {
			return false
		}
	}
	return true
}

func (s *search) allowed(c map[string]version.Constraint) bool {
	for name, constraint := range c {
		if !constraint.AllowsText(s.point[name]) {
			return false
		}
	}
	return true
}

// possible reports whether no axis that is known so far refuses.
func (s *search) possible(c map[string]version.Constraint) bool {
	for name, constraint := range c {
		if value, ok := s.point[name]; ok && !constraint.AllowsText(value) {
			return false
		}
	}
	return true
}

func (s *search) add() {
	axes := maps.Clone(s.point)
	id, err := subst.Expand(s.recipe.ID, withDerived(axes))
	if err != nil {
		s.err = errors.Join(s.err, err)
		return
	}
	cell := Cell{Recipe: s.recipe, ID: id, Axes: axes}
	for _, axis := range s.order[s.named:] {
		cell.Chosen = append(cell.Chosen, axis.Name)
	}
	s.cells = append(s.cells, cell)
}

// withDerived adds the names that are spelled differently in file names.
func withDerived(axes map[string]string) map[string]string {
	vars := maps.Clone(axes)
	if python, ok := axes["python"]; ok {
		vars["cp"] = "cp" + strings.ReplaceAll(python, ".", "")
	}
	return vars
}

func (s *search) exclude() {
	e := Exclusion{Axes: maps.Clone(s.point), Because: "no values of the other axes go with it"}
	if s.broken != nil {
		e.Because, e.Source = s.broken.Because, s.broken.Source
	}
	s.excluded = append(s.excluded, e)
}

// nothing is the error for a filter that leaves no cell.
func (s *search) nothing() error {
	if s.err != nil {
		return s.err
	}
	var faults []error
	for _, e := range s.excluded {
		faults = append(faults, diag.Errorf(diag.Usage, "%s %s cannot be built: %s", s.recipe.Name, e, e.Because).
			WithHint("%s", e.Source))
	}
	return errors.Join(faults...)
}

// String lists the values that were asked for as they are written as flags.
func (e Exclusion) String() string {
	var flags []string
	for _, name := range slices.Sorted(maps.Keys(e.Axes)) {
		flags = append(flags, "--"+name+" "+e.Axes[name])
	}
	return strings.Join(flags, " ")
}
