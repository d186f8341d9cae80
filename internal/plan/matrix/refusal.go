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
		e.Because, e.Source, e.Instead = s.broken.Because, s.broken.Source, instead(s.broken, s.point)
	}
	s.excluded = append(s.excluded, e)
}

// maxInstead bounds the number of rows shown for a rule.
const maxInstead = 8

// instead lists the rows of a rule broken by a point that match it in the axes of the
// rule's condition. They are the available alternatives. If no row matches in all of
// these axes, it lists the rows that match in one.
func instead(r *recipe.Rule, point map[string]string) []string {
	rows, near := []string{}, []string{}
	for _, row := range r.OneOf {
		about := maps.Clone(row)
		maps.DeleteFunc(about, func(name, _ string) bool { return r.When[name] == "" })
		switch {
		case possible(about, point):
			rows = append(rows, row.String())
		case slices.ContainsFunc(slices.Collect(maps.Keys(about)), func(name string) bool { return version.Allows(about[name], point[name]) }):
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

// nothing returns the error for requested values that leave no cell: one for each reason,
// and the nearest cells as commands.
func nothing(r *recipe.Recipe, requested []recipe.Axis, excluded []Exclusion) error {
	if every := reasons(r.Compatible, requested); len(every) > 1 {
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
		errs = append(errs, diag.Errorf(diag.Usage, "%s %s cannot be built: %s", r.Name, which, e.Because).WithHint("%s", hint))
	}
	flags := map[string]string{}
	for _, axis := range requested {
		flags[axis.Name] = strings.Join(axis.Values, ",")
	}
	if near := nearest(r, requested); len(near) > 0 {
		errs = append(errs, diag.Errorf(diag.Usage, "%s has no cell for %s", r.Name, joined(flags, "--%s %s", " ")).
			WithHint("the nearest cells are `%s`", strings.Join(near, "` and `")))
	}
	return errors.Join(errs...)
}

// reasons returns every rule that the requested values break, each with those of its
// axes that were requested. It needs one value for each requested axis.
func reasons(rules []recipe.Rule, requested []recipe.Axis) []Exclusion {
	point := map[string]string{}
	for _, axis := range requested {
		if len(axis.Values) != 1 {
			return nil
		}
		point[axis.Name] = axis.Values[0]
	}
	var all []Exclusion
	for _, r := range rules {
		if !breaks(point, r) {
			continue
		}
		about := maps.Clone(point)
		maps.DeleteFunc(about, func(name, _ string) bool { return !isAbout(&r, name) })
		all = append(all, Exclusion{about, r.Because, r.Source, instead(&r, point)})
	}
	return all
}

// maxNear is the number of cells that a refusal offers.
const maxNear = 2

// nearest returns commands for the cells that keep the most requested values. Of several
// it prefers those whose other values are the nearest in order.
func nearest(r *recipe.Recipe, requested []recipe.Axis) []string {
	every, err := newSearch(r, Everything(r))
	if err != nil {
		return nil
	}
	every.enumerate(0)
	steps := map[string]int{}
	for _, c := range every.cells {
		flags := map[string]string{}
		away := 0
		for _, asked := range requested {
			axis, _ := r.Axis(asked.Name)
			flags[axis.Name] = c.Axes[axis.Name]
			away += distance(version.Ascending(axis.Values), asked.Values, c.Axes[axis.Name])
		}
		command := "builder plan " + r.Name + " " + joined(flags, "--%s %s", " ")
		if before, seen := steps[command]; !seen || away < before {
			steps[command] = away
		}
	}
	commands := slices.SortedFunc(maps.Keys(steps), func(a, b string) int {
		return cmp.Or(cmp.Compare(steps[a], steps[b]), cmp.Compare(a, b))
	})
	return commands[:min(len(commands), maxNear)]
}

// distance counts the ascending values between a requested one and another. One changed
// axis is nearer than two, however many values lie between. Another platform or framework
// counts as two.
func distance(ascending, asked []string, value string) int {
	if slices.Contains(asked, value) {
		return 0
	}
	nearest := len(ascending)
	for _, want := range asked {
		between := slices.Index(ascending, want) - slices.Index(ascending, value)
		nearest = min(nearest, max(between, -between))
	}
	const changed, without = 100, 200 // more than an axis has values
	if value == version.None || slices.Contains(asked, version.None) {
		return without
	}
	return changed + nearest
}
