// Package matrix expands a recipe into cells: points with exactly one value for every
// axis. It enumerates the values of axes named on the command line. Every other axis
// gets the first compatible value in the order of the recipe. Every excluded
// combination states the rule that excludes it.
package matrix

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/base/subst"
	"builder/internal/plan/recipe"
	"builder/internal/plan/version"
)

// A Cell is one point of the matrix of a recipe.
type Cell struct {
	Recipe *recipe.Recipe
	ID     string            // readable, unique within a matrix, and valid as a directory name
	Axes   map[string]string // one value for each axis
	Names  map[string]string // the axes and the names derived from them
	// Chosen lists the axes not named by the filter. Expand chose their values.
	Chosen []string
}

// A Forced is a value that was not requested and differs from the preferred one,
// because a rule excludes the preferred one together with the cell's other values.
type Forced struct {
	Axis    string `json:"axis"`
	Value   string `json:"value"`
	Because string `json:"because"`
	Source  string `json:"source"`
}

// Reasons divides the axes in c.Chosen into those with the preferred value and those
// decided by a rule.
func Reasons(c Cell) (preferred []string, forced []Forced) {
	preferred, forced = []string{}, []Forced{}
	for _, name := range c.Chosen {
		axis, _ := c.Recipe.Axis(name)
		point := maps.Clone(c.Axes)
		point[name] = axis.Values[0]
		if broken := firstBroken(c.Recipe.Compatible, point); c.Axes[name] != axis.Values[0] && broken != nil {
			forced = append(forced, Forced{name, c.Axes[name], broken.Because, broken.Source})
		} else {
			preferred = append(preferred, name)
		}
	}
	return preferred, forced
}

// Filter maps axes to their values on the command line.
type Filter map[string]string

// Everything returns the filter that selects the whole matrix of a recipe. Options have
// their first value.
func Everything(r *recipe.Recipe) Filter {
	all := WithOptions(r)
	for _, axis := range r.Axes {
		if axis.Option {
			delete(all, axis.Name)
		}
	}
	return all
}

// WithOptions returns the filter that selects every value of every axis of a recipe, those of
// options too.
func WithOptions(r *recipe.Recipe) Filter {
	all := Filter{}
	for _, axis := range r.Axes {
		all[axis.Name] = version.Every(axis.Values)
	}
	return all
}

// Expand returns the cells selected by the filter, sorted by id, and the selected
// combinations excluded by the recipe. If no cell remains, it returns an error with
// every exclusion.
func Expand(r *recipe.Recipe, filter Filter) ([]Cell, []Exclusion, error) {
	s, err := newSearch(r, filter)
	if err != nil {
		return nil, nil, err
	}
	s.enumerate(0)
	if s.steps > maxSteps {
		return nil, nil, diag.Errorf(diag.Usage, "recipe %s: the search for compatible values takes more than %d steps", r.Name, maxSteps).
			WithHint("name one value for more axes, or write fewer rules")
	}
	if len(s.cells) == 0 && s.err == nil {
		return nil, s.excluded, nothing(r, s.named, s.excluded)
	}
	slices.SortFunc(s.cells, func(a, b Cell) int { return strings.Compare(a.ID, b.ID) })
	return s.cells, s.excluded, errors.Join(s.err, twins(r, s.cells))
}

// Has reports whether the filter selects a cell. Unlike [Expand] it gathers no reasons, so
// it is cheap to ask for each of many values.
func Has(r *recipe.Recipe, filter Filter) bool {
	s, err := newSearch(r, filter)
	if err != nil {
		return false
	}
	s.enumerate(0)
	return len(s.cells) > 0 && s.steps <= maxSteps
}

// Only returns the one cell of a recipe that an input names.
func Only(recipes []*recipe.Recipe, in recipe.Input) (Cell, error) {
	r, err := recipe.Find(recipes, in.Recipe)
	if err != nil {
		return Cell{}, err
	}
	cells, _, err := Expand(r, in.Axes)
	if err != nil {
		return Cell{}, err
	}
	if len(cells) != 1 {
		return Cell{}, diag.Errorf(diag.Usage, "recipe %s: the axes select %d cells, and an input or a part is one cell", in.Recipe, len(cells))
	}
	return cells[0], nil
}

// Pairs formats the values of axes for users: rocm=5.7 torch=none.
func Pairs(axes map[string]string) string { return joined(axes, "%s=%s", " ") }

// Words formats a condition on axes for users: ray >=2.45.0, fabric roce.
func Words(axes map[string]string) string { return joined(axes, "%s %s", ", ") }

func joined(axes map[string]string, format, separator string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(axes)) {
		parts = append(parts, fmt.Sprintf(format, name, axes[name]))
	}
	return strings.Join(parts, separator)
}

// search walks over the axes: first all selected values of the axes named by the
// filter, then the first compatible value of each other axis.
type search struct {
	recipe   *recipe.Recipe
	named    []recipe.Axis // each with its selected values
	open     []recipe.Axis
	point    map[string]string
	cells    []Cell
	excluded []Exclusion
	steps    int          // number of evaluations of the rules
	broken   *recipe.Rule // rule broken by the current named combination; see related
	err      error
}

func newSearch(r *recipe.Recipe, filter Filter) (*search, error) {
	s := &search{recipe: r, point: map[string]string{}}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(filter)) {
		if _, ok := r.Axis(name); !ok {
			errs = append(errs, diag.Errorf(diag.Usage, "recipe %s has no axis %q", r.Name, name).
				WithHint("%s", diag.DidYouMean(name, r.AxisNames())))
		}
	}
	for _, axis := range r.Axes {
		text, named := filter[axis.Name]
		if !named {
			s.open = append(s.open, axis)
			continue
		}
		values, err := version.Select(text, axis.Values)
		if err != nil {
			errs = append(errs, FlagError(axis.Name, err))
			continue
		}
		s.named = append(s.named, recipe.Axis{Name: axis.Name, Values: values})
	}
	return s, errors.Join(errs...)
}

// FlagError adds the name of the flag to an error and keeps its hint.
func FlagError(axis string, err error) error {
	e := diag.Errorf(diag.Usage, "--%s: %w", axis, err)
	var inner *diag.Error
	if errors.As(err, &inner) {
		e.Hint = inner.Hint
	}
	return e
}

// isAbout reports whether a rule names an axis.
func isAbout(r *recipe.Rule, axis string) bool {
	return slices.ContainsFunc(append([]recipe.Condition{r.When}, r.Rows()...), func(c recipe.Condition) bool { return c[axis] != "" })
}

// maxSteps bounds the evaluations of the rules, and with them the memory of the cells. The
// largest matrix of the catalogue, that of Horovod, takes 8,476 (2026-11-27).
const maxSteps = 250_000

// enumerate walks the named axes from index i. It excludes a combination as soon as its
// known values break a rule, so the exclusion names only axes known by then.
func (s *search) enumerate(i int) {
	if s.steps > maxSteps {
		return
	}
	s.steps++
	if s.broken = firstBroken(s.recipe.Compatible, s.point); s.broken != nil {
		s.exclude()
		return
	}
	if i == len(s.named) {
		if !s.complete(0) {
			s.exclude()
		}
		return
	}
	for _, value := range s.named[i].Values {
		s.point[s.named[i].Name] = value
		s.enumerate(i + 1)
	}
	delete(s.point, s.named[i].Name)
}

// complete gives the open axes from index i their first compatible values. It returns
// false if there are none.
func (s *search) complete(i int) bool {
	if s.steps > maxSteps {
		return true
	}
	s.steps++
	if broken := firstBroken(s.recipe.Compatible, s.point); broken != nil {
		if s.broken == nil || related(broken, s.named, s.open) > max(1, related(s.broken, s.named, s.open)) {
			s.broken = broken
		}
		return false
	}
	if i == len(s.open) {
		s.add()
		return true
	}
	axis := s.open[i]
	defer delete(s.point, axis.Name)
	for _, value := range axis.Values {
		s.point[axis.Name] = value
		if s.complete(i + 1) {
			return true
		}
	}
	return false
}

// related counts the named axes of a rule whose condition names no open one. Of the rules
// broken by the completions of a combination, the one with the most is the reason to
// give if it relates two or more: other values of an open axis may keep the others.
func related(r *recipe.Rule, named, open []recipe.Axis) int {
	n := 0
	for _, axis := range named {
		if isAbout(r, axis.Name) {
			n++
		}
	}
	for _, axis := range open {
		if r.When[axis.Name] != "" {
			return 0
		}
	}
	return n
}

// firstBroken returns the first rule broken by the known values of a point, or nil.
func firstBroken(rules []recipe.Rule, point map[string]string) *recipe.Rule {
	i := slices.IndexFunc(rules, func(r recipe.Rule) bool { return breaks(point, r) })
	if i < 0 {
		return nil
	}
	return &rules[i]
}

// breaks reports whether the known values of a point break a rule.
func breaks(point map[string]string, r recipe.Rule) bool {
	for name := range r.When {
		if _, known := point[name]; !known {
			return false
		}
	}
	return possible(r.When, point) && !slices.ContainsFunc(r.Rows(), func(row recipe.Condition) bool { return possible(row, point) })
}

// possible reports whether c allows all known values of a point.
func possible(c recipe.Condition, point map[string]string) bool {
	for name, text := range c {
		if value, ok := point[name]; ok && !version.Allows(text, value) {
			return false
		}
	}
	return true
}

// add adds the cell at the point. Its names are the axes, the spellings of their values in
// file names, and the vars of the recipe. An error is the same for all cells: they differ
// in values, not in names.
func (s *search) add() {
	names := maps.Clone(s.point)
	if python, ok := s.point["python"]; ok {
		names["cp"] = "cp" + strings.ReplaceAll(python, ".", "")
	}
	vars := []map[string]string{s.recipe.Vars}
	for _, v := range s.recipe.Variants {
		if len(v.Vars) > 0 && v.When.Holds(s.point) {
			vars = append(vars, v.Vars)
		}
	}
	for _, of := range vars {
		for name, text := range of {
			value, err := subst.Expand(text, names) // validation of the recipe allows only axes
			if err != nil {
				s.err = err
				return
			}
			names[name] = value
		}
	}
	id, err := subst.Expand(s.recipe.ID, names)
	if err == nil && !plain.MatchString(id) {
		err = diag.Errorf(diag.Usage, "recipe %s: the id %q is not valid as the name of a folder", s.recipe.Name, id).
			WithHint("use letters, digits and . _ + - only, and begin with a letter or digit")
	}
	if err != nil {
		s.err = err
		return
	}
	cell := Cell{Recipe: s.recipe, ID: id, Axes: maps.Clone(s.point), Names: names}
	for _, axis := range s.open {
		cell.Chosen = append(cell.Chosen, axis.Name)
	}
	s.cells = append(s.cells, cell)
}

// plain matches an id that is valid as the name of a folder.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)

// twins returns an error if sorted cells share an id. They would share a directory, and
// the wheel of one would be taken for the wheel of the other.
func twins(r *recipe.Recipe, cells []Cell) error {
	shared, differ := "", map[string]bool{}
	for i := 1; i < len(cells); i++ {
		a, b := cells[i-1], cells[i]
		if a.ID != b.ID {
			continue
		}
		shared = a.ID
		for name, value := range a.Axes {
			differ[name] = differ[name] || b.Axes[name] != value
		}
	}
	if shared == "" {
		return nil
	}
	names := slices.DeleteFunc(r.AxisNames(), func(name string) bool { return !differ[name] })
	return r.Fault(diag.Errorf(diag.Usage, "recipe %s: different cells have the id %s: they differ in %s", r.Name, shared, strings.Join(names, ", ")).
		WithHint("use these axes in the id of the recipe"))
}
