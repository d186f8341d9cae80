package ci

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"builder/internal/plan/matrix"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/internal/plan/version"
)

// A Point is a cell with its facts: its axes and the facts of its image. Patches may
// name any of them.
type Point struct {
	matrix.Cell
	Facts map[string]string
}

// Condense returns a few points of one recipe that together hold all [Pairs], sorted by
// id.
func Condense(points []Point, patches []patch.Patch) ([]Point, error) {
	pairs, err := Pairs(points, patches)
	if err != nil {
		return nil, err
	}
	points = ranked(points)
	var few []Point
	for _, i := range cover(holdings(points, pairs), len(pairs)) {
		few = append(few, points[i])
	}
	slices.SortFunc(few, func(a, b Point) int { return cmp.Compare(a.ID, b.ID) })
	return few, nil
}

// Pairs returns the values that condensed points of one recipe must hold: the oldest
// and newest version of every axis, its words, and the values on either side of every
// boundary named by a rule, a variant or a patch. Axes are sorted by name. Within an
// axis, versions come first in version order, then words.
func Pairs(points []Point, patches []patch.Patch) ([]Pair, error) {
	if len(points) == 0 {
		return nil, nil
	}
	r := points[0].Recipe
	constraints, err := constraintsOf(conditions(r, patches))
	if err != nil {
		return nil, err
	}
	var pairs []Pair
	for _, name := range names(r, patches) {
		for _, value := range telling(occurring(points, name), constraints[name]) {
			pairs = append(pairs, Pair{name, value})
		}
	}
	return pairs, nil
}

// names returns the axes and the facts named by patches, sorted.
func names(r *recipe.Recipe, patches []patch.Patch) []string {
	all := r.AxisNames()
	for _, p := range patches {
		all = slices.AppendSeq(all, maps.Keys(p.When))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// conditions returns every condition of rules, variants and patches. The merged range
// of a patch is a condition on the version.
func conditions(r *recipe.Recipe, patches []patch.Patch) []recipe.Condition {
	var all []recipe.Condition
	for _, rule := range r.Compatible {
		all = append(append(all, rule.When), rule.Rows()...)
	}
	for _, v := range r.Variants {
		all = append(all, v.When)
	}
	for _, p := range patches {
		all = append(all, p.When)
		if p.Merged != "" {
			all = append(all, recipe.Condition{"version": p.Merged})
		}
	}
	return all
}

func constraintsOf(conditions []recipe.Condition) (map[string][]version.Constraint, error) {
	all := map[string][]version.Constraint{}
	var errs []error
	for _, condition := range conditions {
		for name, text := range condition {
			c, err := version.ParseConstraint(text)
			errs = append(errs, err)
			all[name] = append(all[name], c)
		}
	}
	return all, errors.Join(errs...)
}

// occurring returns the distinct values of an axis or a fact, sorted.
func occurring(points []Point, name string) []string {
	seen := map[string]bool{}
	for _, p := range points {
		if value, ok := p.Facts[name]; ok {
			seen[value] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// telling returns the values of one axis that a condensed matrix must hold: versions in
// version order, then words.
func telling(values []string, constraints []version.Constraint) []string {
	var words []string
	parsed := map[string]version.Version{}
	for _, value := range values {
		v, err := version.Parse(value)
		if err != nil {
			words = append(words, value)
			continue
		}
		parsed[value] = v
	}
	versions := slices.SortedFunc(maps.Keys(parsed), func(a, b string) int {
		return cmp.Or(version.Compare(parsed[a], parsed[b]), cmp.Compare(a, b))
	})
	keep := map[string]bool{}
	for i, now := range versions {
		if i == 0 || i == len(versions)-1 {
			keep[now] = true
		}
		if i > 0 && slices.ContainsFunc(constraints, divides(parsed[versions[i-1]], parsed[now])) {
			keep[versions[i-1]], keep[now] = true, true
		}
	}
	kept := slices.DeleteFunc(versions, func(v string) bool { return !keep[v] })
	return append(kept, words...)
}

// divides reports whether a constraint allows exactly one of two versions.
func divides(a, b version.Version) func(version.Constraint) bool {
	return func(c version.Constraint) bool { return c.Allows(a) != c.Allows(b) }
}

// ranked sorts the points by preference, then by id.
func ranked(points []Point) []Point {
	return slices.SortedFunc(slices.Values(points), func(a, b Point) int {
		return cmp.Or(cmp.Compare(rank(a.Cell), rank(b.Cell)), cmp.Compare(a.ID, b.ID))
	})
}

// rank returns the sum of the positions of a cell's values in their axes. A low rank is
// preferred.
func rank(c matrix.Cell) int {
	sum := 0
	for _, axis := range c.Recipe.Axes {
		sum += slices.Index(axis.Values, c.Axes[axis.Name])
	}
	return sum
}

// holdings returns, for each point, the indices of the pairs it holds.
func holdings(points []Point, pairs []Pair) [][]int {
	index := map[Pair]int{}
	for j, pair := range pairs {
		index[pair] = j
	}
	all := make([][]int, len(points))
	for i, p := range points {
		for name, value := range p.Facts {
			if j, wanted := index[Pair{name, value}]; wanted {
				all[i] = append(all[i], j)
			}
		}
	}
	return all
}

// cover returns indices of sets that together hold all of 0 to n-1. The package comment
// describes the algorithm. Each number must be in at least one set.
func cover(sets [][]int, n int) []int {
	times := make([]int, n) // number of chosen sets with this element
	var chosen []int
	for left := n; left > 0; {
		best, most := 0, 0
		for i, set := range sets {
			if fresh := count(set, func(j int) bool { return times[j] == 0 }); fresh > most {
				best, most = i, fresh
			}
		}
		for _, j := range sets[best] {
			times[j]++
		}
		chosen = append(chosen, best)
		left -= most
	}
	return slices.DeleteFunc(chosen, func(i int) bool {
		needless := count(sets[i], func(j int) bool { return times[j] > 1 }) == len(sets[i])
		if needless {
			for _, j := range sets[i] {
				times[j]--
			}
		}
		return needless
	})
}

func count(set []int, is func(int) bool) int {
	n := 0
	for _, j := range set {
		if is(j) {
			n++
		}
	}
	return n
}
