package recipe

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/plan/version"
)

// checker adds the problems of what stands in a file about its axes.
type checker struct {
	*decode.File
	axes []Axis
}

// CheckMatrix adds the problems of axes and of the rules over them, of a recipe or of a
// profile.
func CheckMatrix(f *decode.File, axes []Axis, rules []Rule) { checker{f, axes}.matrix(rules) }

// CheckWhen adds the problems of a condition over axes at a path of the file.
func CheckWhen(f *decode.File, axes []Axis, c Condition, at string) { checker{f, axes}.when(c, at) }

// matrix checks the axes, and that a rule has either needs or one-of.
func (c checker) matrix(rules []Rule) {
	seen := map[string]bool{}
	for i, a := range c.axes {
		at := fmt.Sprintf("axes[%d]", i)
		if seen[a.Name] {
			c.Add(at+".name", "axis %q occurs twice", a.Name)
		}
		seen[a.Name] = true
		for j, v := range a.Values {
			switch at := fmt.Sprintf("%s.values[%d]", at, j); {
			case v == "" || slices.Contains(a.Values[:j], v):
				c.Add(at, "value %q is empty or occurs twice", v)
			case v == "all" || v == version.Latest:
				c.Add(at, "%s cannot be a value: --%s %[1]s has a meaning for every axis", v, a.Name)
			}
		}
	}
	for i, rule := range rules {
		at := fmt.Sprintf("compatible[%d]", i)
		c.when(rule.When, at+".when")
		if (len(rule.Needs) == 0) == (len(rule.OneOf) == 0) {
			c.Add(at, "a rule must have either needs or one-of")
		}
		if len(rule.Needs) > 0 {
			c.condition(rule.Needs, at+".needs")
		}
		for j, row := range rule.OneOf {
			c.condition(row, fmt.Sprintf("%s.one-of[%d]", at, j))
		}
	}
}

// condition checks a condition over axes. It reports whether it is valid.
func (c checker) condition(over Condition, at string) bool {
	valid := len(over) > 0
	if !valid {
		c.Add(at, "a condition must name at least one axis")
	}
	for _, name := range slices.Sorted(maps.Keys(over)) {
		if _, ok := find(c.axes, name); !ok {
			valid = false
			c.Add(at+"."+name, "unknown axis %q", name).Hint = diag.DidYouMean(name, Names(c.axes))
		}
		if _, err := version.ParseConstraint(over[name]); err != nil {
			valid = false
			c.Add(at+"."+name, "%w", err)
		}
	}
	return valid
}

// when is condition for one that some cell should meet: it also rejects a value that the
// axis lacks. A range may be meant for later values.
func (c checker) when(over Condition, at string) {
	if !c.condition(over, at) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(over)) {
		axis, _ := find(c.axes, name)
		if !strings.ContainsAny(over[name], "<>=!~") && len(axis.allowed(over[name])) == 0 {
			c.Add(at+"."+name, "the axis %s has no value %s: no cell meets this condition", name, over[name]).
				Hint = "its values are " + strings.Join(axis.Values, ", ")
		}
	}
}

// allowed returns the values that a valid constraint allows, in their order.
func (a Axis) allowed(constraint string) []string {
	return slices.DeleteFunc(slices.Clone(a.Values), func(value string) bool { return !version.Allows(constraint, value) })
}

// find returns the axis with the given name.
func find(axes []Axis, name string) (Axis, bool) {
	i := slices.IndexFunc(axes, func(a Axis) bool { return a.Name == name })
	if i < 0 {
		return Axis{}, false
	}
	return axes[i], true
}

// Names returns the names of axes in their order.
func Names(axes []Axis) []string {
	all := make([]string, len(axes))
	for i, a := range axes {
		all[i] = a.Name
	}
	return all
}
