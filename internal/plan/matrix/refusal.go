package matrix

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/plan/recipe"
	"builder/internal/plan/version"
)

// An Exclusion is a requested combination that the recipe excludes. Axes holds the
// requested values up to the first one that breaks a rule.
type Exclusion struct {
	Axes    map[string]string `json:"axes"`
	Because string            `json:"because"`
	Source  string            `json:"source"`
	Instead []string          `json:"instead"` // rows of the rule that match these values; never nil
}

// String returns the requested values as command-line flags.
func (e Exclusion) String() string { return joined(e.Axes, "--%s %s", " ") }

func (s *search) exclude() {
	e := Exclusion{Axes: maps.Clone(s.point), Because: "no values of the other axes are compatible with it", Instead: []string{}}
	if s.broken != nil {
		e.Because, e.Source, e.Instead = s.broken.Because, s.broken.Source, s.instead(s.broken)
	}
	s.excluded = append(s.excluded, e)
}

// maxInstead bounds the number of rows shown for a rule.
const maxInstead = 8

// instead lists the rows of a broken rule that match the requested values in the axes
// of its condition. They are the available alternatives. If no row matches in all of
// these axes, it lists the rows that match in one.
func (s *search) instead(r *recipe.Rule) []string {
	rows, near := []string{}, []string{}
	for _, row := range r.OneOf {
		about := maps.Clone(row)
		maps.DeleteFunc(about, func(name, _ string) bool { return r.When[name] == "" })
		switch {
		case s.possible(about):
			rows = append(rows, row.String())
		case slices.ContainsFunc(slices.Collect(maps.Keys(about)), func(name string) bool { return version.Allows(about[name], s.point[name]) }):
			near = append(near, row.String())
		}
	}
	if len(rows) == 0 {
		rows = near
	}
	return rows[:min(len(rows), maxInstead)]
}

// shown is the number of combinations that a refusal names for a reason with many.
const shown = 3

// nothing returns the error for a filter that leaves no cell: one for each reason, and the
// nearest cells as commands.
func (s *search) nothing() error {
	if s.err != nil {
		return s.err
	}
	excluded := s.excluded
	if every := s.reasons(); len(every) > 1 {
		excluded = every
	}
	var errs []error
	all, named := map[string]int{}, map[string]int{} // by reason
	for _, e := range excluded {
		all[e.Because]++
	}
	for _, e := range excluded {
		named[e.Because]++
		which, n, more := e.String(), named[e.Because], all[e.Because]-shown
		if more > 1 && n > shown {
			continue
		}
		if more > 1 && n == shown {
			which += fmt.Sprintf(" and %d more combinations", more)
		}
		hint := e.Source
		if len(e.Instead) > 0 {
			hint = "compatible: " + strings.Join(e.Instead, "; ") + " (" + e.Source + ")"
		}
		errs = append(errs, diag.Errorf(diag.Usage, "%s %s cannot be built: %s", s.recipe.Name, which, e.Because).WithHint("%s", hint))
	}
	if near := s.nearest(); len(near) > 0 {
		errs = append(errs, diag.Errorf(diag.Usage, "%s has no cell for %s", s.recipe.Name, s.asked()).
			WithHint("the nearest cells are `%s`", strings.Join(near, "` and `")))
	}
	return errors.Join(errs...)
}

// reasons returns every rule that the requested values break, each with those of its
// axes that were requested. It needs one value for each requested axis.
func (s *search) reasons() []Exclusion {
	point := map[string]string{}
	for _, axis := range s.order[:s.named] {
		if len(axis.Values) != 1 {
			return nil
		}
		point[axis.Name] = axis.Values[0]
	}
	s.point = point
	var all []Exclusion
	for i := range s.recipe.Compatible {
		r := &s.recipe.Compatible[i]
		if !s.breaks(r) {
			continue
		}
		about := maps.Clone(point)
		maps.DeleteFunc(about, func(name, _ string) bool { return !isAbout(r, name) })
		all = append(all, Exclusion{about, r.Because, r.Source, s.instead(r)})
	}
	return all
}

// asked returns the requested values as flags.
func (s *search) asked() string {
	flags := map[string]string{}
	for _, axis := range s.order[:s.named] {
		flags[axis.Name] = strings.Join(axis.Values, ",")
	}
	return joined(flags, "--%s %s", " ")
}

// maxNear is the number of cells that a refusal offers.
const maxNear = 2

// nearest returns commands for the cells that keep the most requested values. Of several
// it prefers those whose other values are the nearest in order.
func (s *search) nearest() []string {
	every, err := newSearch(s.recipe, Everything(s.recipe))
	if err != nil {
		return nil
	}
	every.enumerate(0)
	steps := map[string]int{}
	for _, c := range every.cells {
		flags := map[string]string{}
		away := 0
		for _, axis := range s.order[:s.named] {
			flags[axis.Name] = c.Axes[axis.Name]
			away += s.away(axis, c.Axes[axis.Name])
		}
		command := "builder plan " + s.recipe.Name + " " + joined(flags, "--%s %s", " ")
		if before, seen := steps[command]; !seen || away < before {
			steps[command] = away
		}
	}
	commands := slices.SortedFunc(maps.Keys(steps), func(a, b string) int {
		return cmp.Or(cmp.Compare(steps[a], steps[b]), cmp.Compare(a, b))
	})
	return commands[:min(len(commands), maxNear)]
}

// away counts the values between a requested one and another, in their order. One changed
// axis is nearer than two, however many values lie between. Another platform or framework
// counts as two.
func (s *search) away(asked recipe.Axis, value string) int {
	if slices.Contains(asked.Values, value) {
		return 0
	}
	axis, _ := s.recipe.Axis(asked.Name)
	ascending := version.Ascending(axis.Values)
	nearest := len(ascending)
	for _, want := range asked.Values {
		between := slices.Index(ascending, want) - slices.Index(ascending, value)
		nearest = min(nearest, max(between, -between))
	}
	const changed, without = 100, 200 // more than an axis has values
	if value == version.None || slices.Contains(asked.Values, version.None) {
		return without
	}
	return changed + nearest
}
