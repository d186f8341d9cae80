package recipe

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/plan/version"
)

// A Selector is a flag that chooses values of axes by the release of another project:
// --torch 2.11.0 chooses the NCCL that this torch pins. It tells no cells apart and is
// not part of an entry.
type Selector struct {
	Name    string     `yaml:"name" json:"name" jsonschema:"description=name of the flag"`
	About   string     `yaml:"about" json:"about" jsonschema:"description=one line for the help of the flag"`
	Because string     `yaml:"because" json:"because" jsonschema:"description=the reason that plan prints for the chosen values"`
	Source  string     `yaml:"source" json:"source" jsonschema:"format=uri,description=where the fact stands"`
	Values  []Selected `yaml:"values" json:"values" jsonschema:"minItems=1,description=newest first"`
}

// Selected is a value of a selector. An axis takes the first value that its constraint
// allows, or those of its own flag that the constraint allows.
type Selected struct {
	Value string    `yaml:"value" json:"value" jsonschema:"description=release of the other project"`
	Axes  Condition `yaml:"axes" json:"axes" jsonschema:"description=axes with constraints; the first allowed value counts"`
}

// Names returns the values of a selector.
func (s Selector) Names() []string {
	names := make([]string, len(s.Values))
	for i, v := range s.Values {
		names[i] = v.Value
	}
	return names
}

// Choose returns the value of a selector that a text on the command line names.
func (s Selector) Choose(text string) (Selected, error) {
	if text == version.Latest {
		return s.Values[0], nil // the newest stands first
	}
	found, err := version.Select(text, s.Names())
	if err != nil {
		return Selected{}, err
	}
	if len(found) != 1 {
		return Selected{}, diag.Errorf(diag.Usage, "%q names %d releases", text, len(found)).WithHint("name one: %s is the newest", s.Values[0].Value)
	}
	i := slices.IndexFunc(s.Values, func(v Selected) bool { return v.Value == found[0] })
	return s.Values[i], nil
}

// Narrow returns the values of axes that a value of the selector leaves. filter holds the
// texts of the flags of axes, and chosen the values of the axes in v.
func (s Selector) Narrow(v Selected, axes []Axis, filter map[string]string) (chosen map[string]string, err error) {
	chosen = map[string]string{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(v.Axes)) {
		axis, _ := find(axes, name)
		allowed := axis.allowed(v.Axes[name])
		text, named := filter[name]
		if !named {
			chosen[name] = allowed[0]
			continue
		}
		asked, err := version.Select(text, axis.Values)
		if err != nil {
			continue // matrix.Expand reports it
		}
		left := slices.DeleteFunc(slices.Clone(asked), func(value string) bool { return !slices.Contains(allowed, value) })
		if len(left) == 0 {
			errs = append(errs, diag.Errorf(diag.Usage, "--%s %s needs %s %s, and --%s is %s", s.Name, v.Value, name, v.Axes[name], name, text).
				WithHint("leave out one of the two: %s (%s)", s.Because, s.Source))
			continue
		}
		chosen[name] = strings.Join(left, ",")
	}
	return chosen, errors.Join(errs...)
}

// selectors requires unique names, and an allowed value for each constraint of a value.
func (c checker) selectors(all []Selector) {
	seen := map[string]bool{}
	for i, s := range all {
		if _, axis := find(c.axes, s.Name); axis || seen[s.Name] {
			c.Add(fmt.Sprintf("selectors[%d].name", i), "the recipe has two flags --%s", s.Name)
		}
		seen[s.Name] = true
		for j, v := range s.Values {
			at := fmt.Sprintf("selectors[%d].values[%d]", i, j)
			if v.Value == "all" || slices.Contains(s.Names()[:j], v.Value) {
				c.Add(at, "value %q is all, or occurs twice", v.Value)
			}
			if !c.condition(v.Axes, at+".axes") {
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(v.Axes)) {
				if axis, _ := find(c.axes, name); len(axis.allowed(v.Axes[name])) == 0 {
					c.Add(at+".axes."+name, "no value of the axis %s is %s", name, v.Axes[name])
				}
			}
		}
	}
}
