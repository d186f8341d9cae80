package ci

import (
	"cmp"
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
// id. It leaves out the pairs that points with a proven id hold already; proven is nil if
// none is.
func Condense(points []Point, patches []patch.Patch, proven map[string]bool) []Point {
	if len(points) == 1 && !proven[points[0].ID] { // the cell of a recipe without axes has no pairs
		return points
	}
	pairs := Pairs(points, patches)
	for _, p := range points {
		if proven[p.ID] {
			pairs = slices.DeleteFunc(pairs, func(pair Pair) bool { return p.Facts[pair.Axis] == pair.Value })
		}
	}
	points = slices.SortedFunc(slices.Values(points), func(a, b Point) int { // by preference
		return cmp.Or(cmp.Compare(rank(a.Cell), rank(b.Cell)), cmp.Compare(a.ID, b.ID))
	})
	var few []Point
	for _, i := range cover(holdings(points, pairs), len(pairs)) {
		few = append(few, points[i])
	}
	slices.SortFunc(few, func(a, b Point) int { return cmp.Compare(a.ID, b.ID) })
	return few
}

// Pairs returns the values that condensed points of one recipe must hold: the oldest
// and newest version of every axis, its words, and the values on either side of every
// boundary named by a rule, a variant or a patch. Axes are sorted by name. Within an
// axis, versions come first in version order, then words.
func Pairs(points []Point, patches []patch.Patch) (pairs []Pair) {
	if len(points) == 0 {
		return nil
	}
	r := points[0].Recipe
	constraints := map[string][]string{}
	for _, condition := range conditions(r, patches) {
		for name, text := range condition {
			constraints[name] = append(constraints[name], text)
		}
	}
	for _, name := range names(r, patches) {
		for _, value := range telling(occurring(points, name), constraints[name]) {
			pairs = append(pairs, Pair{name, value})
		}
	}
	return pairs
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
func telling(values, constraints []string) []string {
	values = version.Ascending(values)
	versions := 0
	for versions < len(values) && version.Is(values[versions]) {
		versions++
	}
	// divided reports whether a constraint allows exactly one of the versions before and at i.
	divided := func(i int) bool {
		return slices.ContainsFunc(constraints, func(text string) bool {
			return version.Allows(text, values[i-1]) != version.Allows(text, values[i])
		})
	}
	var kept []string
	for i, value := range values {
		if i == 0 || i >= versions-1 || divided(i) || divided(i+1) {
			kept = append(kept, value)
		}
	}
	return kept
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
