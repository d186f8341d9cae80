package stack

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"builder/internal/files/inspect"
)

// A Part holds the known facts about a wheel of a wheelhouse: the axes of its cell, and
// the report of its content, which is nil before the wheel exists.
type Part struct {
	Name      string // of the cell, or of the wheel without its tags
	Axes      map[string]string
	Report    *inspect.Report
	StableABI bool // the tags also allow later Pythons than the named one
}

// Agree compares the parts in each of the names, which are axes or facts. faults has an
// entry for each name with different values, with the parts that have each value. seen
// states the common value of each other name.
func Agree(names []string, parts []Part) (problems, seen []string) {
	for _, name := range names {
		problem, what := agree(name, parts)
		if problem != "" {
			problems = append(problems, problem)
			continue
		}
		seen = append(seen, what)
	}
	return problems, seen
}

// agree compares the parts in one name. It first compares their axes. It then compares
// the content of the wheels with the axes, or with each other if no part has the axis.
func agree(name string, parts []Part) (problem, seen string) {
	asked, found := map[string][]string{}, map[string][]string{}
	for _, p := range parts {
		if value := p.Axes[name]; value != "" {
			asked[value] = append(asked[value], p.Name)
		}
		for _, value := range p.says(name) {
			found[value] = append(found[value], p.Name)
		}
	}
	said := asked
	if len(asked) == 0 {
		said = found
	}
	switch values := slices.Collect(maps.Keys(said)); len(values) {
	case 0:
		return "", fmt.Sprintf("%s has no value in %d parts", name, len(parts))
	case 1:
		if len(asked) == 1 {
			problem = contradict(name, values[0], parts)
		}
		return problem, fmt.Sprintf("%s is %s (%s)", name, values[0], strings.Join(said[values[0]], ", "))
	}
	return differ(name, said), ""
}

// differ returns a message with the parts that have each value.
func differ(name string, said map[string][]string) string {
	var all []string
	for _, value := range slices.Sorted(maps.Keys(said)) {
		all = append(all, fmt.Sprintf("%s in %s", value, strings.Join(said[value], ", ")))
	}
	return fmt.Sprintf("%s is %s", name, strings.Join(all, " and "))
}

// contradict lists the parts with content that contradicts the value of the axis.
func contradict(name, value string, parts []Part) string {
	expected, err := inspect.ParseExpectations([]string{name + "=" + value})
	if err != nil {
		return "" // an axis that is not a fact about files
	}
	var denied []string
	for _, p := range parts {
		if len(p.says(name)) == 0 {
			continue
		}
		if answer, evidence := expected[0].Judge(*p.Report); answer == inspect.No {
			denied = append(denied, fmt.Sprintf("%s is for %s %s, but its %s", p.Name, name, value, evidence))
		}
	}
	return strings.Join(denied, "; ")
}

// says returns the values of a fact in the content of a part. It omits values that
// contradict nothing: none, unknown, and compatibility with any Python.
func (p Part) says(name string) []string {
	if p.Report == nil {
		return nil
	}
	fact, ok := p.Report.Fact(name)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(fact.Values), func(value string) bool {
		return value == inspect.None || value == inspect.Unknown ||
			name == "python" && (strings.HasPrefix(value, "py") || p.StableABI)
	})
}
