package matrix_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/test/kit/must"
)

// anyRecipe has two to four axes and up to five rules over them. Its id names every
// axis.
func anyRecipe() *rapid.Generator[*recipe.Recipe] {
	return rapid.Custom(func(t *rapid.T) *recipe.Recipe {
		r, sep := &recipe.Recipe{Name: "any"}, ""
		for i := range rapid.IntRange(2, 4).Draw(t, "axes") {
			name := string(rune('a' + i))
			values := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"1.9", "1.10", "2.0", "2.1.3", "on", "gfx90a"}), 1, 4, rapid.ID[string]).Draw(t, name)
			r.Axes = append(r.Axes, axis(name, values...))
			r.ID += sep + "{{" + name + "}}"
			sep = "_"
		}
		condition := func(label string) recipe.Condition {
			c := recipe.Condition{}
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(r.AxisNames()), 1, 2, rapid.ID[string]).Draw(t, label) {
				c[name] = rapid.SampledFrom([]string{"1.9", ">=1.10", "<2", "!=2.0", "2.1", "on", "!=on", "gfx90a", ">=9"}).Draw(t, label+" "+name)
			}
			return c
		}
		for i := range rapid.IntRange(0, 5).Draw(t, "rules") {
			written := rule(condition("when"), condition("needs"), fmt.Sprint("rule", i))
			if rapid.Bool().Draw(t, "table") {
				written.OneOf, written.Needs = []recipe.Condition{written.Needs, condition("row")}, nil
			}
			r.Compatible = append(r.Compatible, written)
		}
		return r
	})
}

// anyFilter names some axes of r, each with a list of its values.
func anyFilter(t *rapid.T, r *recipe.Recipe) (matrix.Filter, map[string][]string) {
	filter, chosen := matrix.Filter{}, map[string][]string{}
	for _, a := range r.Axes {
		if rapid.Bool().Draw(t, "names "+a.Name) {
			values := rapid.SliceOfNDistinct(rapid.SampledFrom(a.Values), 1, -1, rapid.ID[string]).Draw(t, "values of "+a.Name)
			filter[a.Name], chosen[a.Name] = strings.Join(values, ","), values
		}
	}
	return filter, chosen
}

// holds implements the rules a second time.
func holds(t *rapid.T, r *recipe.Recipe, axes map[string]string) bool {
	return !slices.ContainsFunc(r.Compatible, func(rule recipe.Rule) bool {
		return rule.When.Holds(axes) && !slices.ContainsFunc(rule.Rows(), func(row recipe.Condition) bool { return row.Holds(axes) })
	})
}

// points lists every point of the axes in the order of preference: the values of the
// first axis change slowest.
func points(axes []recipe.Axis) []map[string]string {
	all := []map[string]string{{}}
	for _, a := range axes {
		var next []map[string]string
		for _, p := range all {
			for _, v := range a.Values {
				p = maps.Clone(p)
				p[a.Name] = v
				next = append(next, p)
			}
		}
		all = next
	}
	return all
}

// expected tries all points. For each combination of named values it returns the point
// that satisfies the rules and has the most preferred values, or the combination as
// excluded if there is none.
func expected(t *rapid.T, r *recipe.Recipe, chosen map[string][]string) (cells, excluded []map[string]string) {
	var named, open []recipe.Axis
	for _, a := range r.Axes {
		if values, ok := chosen[a.Name]; ok {
			named = append(named, axis(a.Name, values...))
		} else {
			open = append(open, a)
		}
	}
	for _, asked := range points(named) {
		var first map[string]string
		for _, p := range points(open) {
			maps.Copy(p, asked)
			if first == nil && holds(t, r, p) {
				first = p
			}
		}
		if first == nil {
			excluded = append(excluded, asked)
			continue
		}
		cells = append(cells, first)
	}
	return cells, excluded
}

func sorted(points []map[string]string) []map[string]string {
	return slices.SortedFunc(slices.Values(points), func(a, b map[string]string) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) // fmt sorts keys
	})
}

func expand(t *rapid.T, r *recipe.Recipe, filter matrix.Filter) (cells, excluded []map[string]string) {
	got, left, err := matrix.Expand(r, filter)
	must.Hold(t, (err != nil) == (len(got) == 0), "%d cells and %v", len(got), err)
	must.Hold(t, slices.IsSortedFunc(got, func(a, b matrix.Cell) int { return strings.Compare(a.ID, b.ID) }), "not sorted: %v", ids(got))
	for _, c := range got {
		cells = append(cells, c.Axes)
	}
	for _, e := range left {
		excluded = append(excluded, e.Axes)
		must.Hold(t, e.Because != "", "%v has no reason", e)
	}
	return sorted(cells), sorted(excluded)
}

// Each requested combination is either a cell, the most preferred one that satisfies
// all rules, or excluded because there is none.
func TestExpandAgreesWithTryingAllPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRecipe().Draw(t, "recipe")
		filter, chosen := anyFilter(t, r)
		cells, excluded := expand(t, r, filter)
		wantCells, wantExcluded := expected(t, r, chosen)
		if diff := cmp.Diff(sorted(wantCells), cells); diff != "" {
			t.Errorf("cells of %v (-want +got):\n%s", filter, diff)
		}
		// Exactly one exclusion covers each combination without a cell. It may omit
		// axes that play no part. No exclusion covers any other combination.
		uses := make([]int, len(excluded))
		for _, asked := range wantExcluded {
			if n := covered(excluded, asked, uses); n != 1 {
				t.Errorf("%v of %v is in %d exclusions: %v", asked, filter, n, excluded)
			}
		}
		if i := slices.Index(uses, 0); i >= 0 {
			t.Errorf("%v excludes nothing that was asked for", excluded[i])
		}
		for _, cell := range wantCells {
			if n := covered(excluded, cell, uses); n > 0 {
				t.Errorf("the cell %v is excluded by %v", cell, excluded)
			}
		}
	})
}

// covered returns the number of exclusions that hold for a point.
func covered(excluded []map[string]string, point map[string]string, uses []int) int {
	n := 0
	for i, e := range excluded {
		holds := true
		for name, value := range e {
			holds = holds && point[name] == value
		}
		if holds {
			n++
			uses[i]++
		}
	}
	return n
}

// The reason of an exclusion is a rule that some completion of the combination breaks.
func TestTheReasonIsARuleThatIsBroken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRecipe().Draw(t, "recipe")
		filter, chosen := anyFilter(t, r)
		_, excluded, _ := matrix.Expand(r, filter)
		var open []recipe.Axis
		for _, a := range r.Axes {
			if _, named := chosen[a.Name]; !named {
				open = append(open, a)
			}
		}
		for _, e := range excluded {
			open := slices.Clone(open)
			for name, values := range chosen {
				if _, said := e.Axes[name]; !said {
					open = append(open, axis(name, values...))
				}
			}
			i := slices.IndexFunc(r.Compatible, func(rule recipe.Rule) bool { return rule.Because == e.Because && rule.Source == e.Source })
			must.Hold(t, i >= 0, "%v: no rule says %q", e, e.Because)
			alone := &recipe.Recipe{Compatible: r.Compatible[i : i+1]}
			breaks := slices.ContainsFunc(points(open), func(p map[string]string) bool {
				maps.Copy(p, e.Axes)
				return !holds(t, alone, p)
			})
			if !breaks {
				t.Errorf("%v breaks no %q", e, e.Because)
			}
		}
	})
}
