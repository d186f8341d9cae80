package stack

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"builder/internal/files/inspect"
)

// A Part is what is known of a wheel of a wheelhouse: what its cell was asked for,
// and what its bytes say, which is nil before there are any.
type Part struct {
	Name      string // of the cell, or of the wheel without its tags
	Axes      map[string]string
	Report    *inspect.Report
	StableABI bool // the tags allow later Pythons than they name
}

// Agree compares the parts in each of the names, axes and facts alike. Faults
// says of every name in which they differ who says what; seen says of the others
// what they agree in.
func Agree(names []string, parts []Part) (faults, seen []string) {
	for _, name := range names {
		fault, what := agree(name, parts)
		if fault != "" {
			faults = append(faults, fault)
			continue
		}
		seen = append(seen, what)
	}
	return faults, seen
}

// agree compares the parts in one name: first what they were asked for, then what
// their bytes say with that, or with each other where nobody was asked.
func agree(name string, parts []Part) (fault, seen string) {
	asked, found := map[string][]string{}, map[string][]string{}
	for _, p := range parts {
		if value := p.Axes[name]; value != "" {
			asked[value] = append(asked[value], p.Name)
		}
		for _, value := range p.says(name) {
			found[value] = append(found[value], p.Name)
		}
	}
	switch {
	case len(asked) > 1:
		return differ(name, asked), ""
	case len(asked) == 1:
		value := slices.Collect(maps.Keys(asked))[0]
		return contradict(name, value, parts), fmt.Sprintf("%s is %s (%s)", name, value, strings.Join(asked[value], ", "))
	case len(found) > 1:
		return differ(name, found), ""
	case len(found) == 1:
		value := slices.Collect(maps.Keys(found))[0]
		return "", fmt.Sprintf("%s is %s (%s)", name, value, strings.Join(found[value], ", "))
	}
	return "", fmt.Sprintf("%s plays no role in %d parts", name, len(parts))
}

// differ tells who says what.
func differ(name string, said map[string][]string) string {
	var all []string
	for _, value := range slices.Sorted(maps.Keys(said)) {
		all = append(all, fmt.Sprintf("%s in %s", value, strings.Join(said[value], ", ")))
	}
	return fmt.Sprintf("%s is %s", name, strings.Join(all, " and "))
}

// contradict names the parts whose bytes deny the value that all were asked for.
func contradict(name, value string, parts []Part) string {
	expected, err := inspect.ParseExpectations([]string{name + "=" + value})
	if err != nil {
		return "" // an axis that is no fact about files
	}
	var denied []string
	for _, p := range parts {
		if len(p.says(name)) == 0 {
			continue
		}
		if answer, evidence := expected[0].Judge(*p.Report); answer == inspect.No {
			denied = append(denied, fmt.Sprintf("%s was to be of %s %s, and its %s", p.Name, name, value, evidence))
		}
	}
	return strings.Join(denied, "; ")
}

// says returns what the bytes of a part say of a name. To have nothing of a kind,
// not to tell, and to run with any Python contradict nothing.
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
