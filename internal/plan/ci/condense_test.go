package ci_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"builder/internal/plan/ci"
	"builder/internal/plan/matrix"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/internal/plan/version"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// stack has boundaries of every kind: a rule, a table, a variant, a patch's condition
// on an axis and on a fact, and a version merged upstream.
func stack() (*recipe.Recipe, []patch.Patch) {
	return &recipe.Recipe{
			Name: "stack", ID: "stack-{{version}}-rocm{{rocm}}-{{arch}}-{{mpi}}",
			Axes: []recipe.Axis{
				axis("version", "0.9", "0.8", "0.7", "0.6", "0.5"),
				axis("rocm", "6.2", "5.7", "6.0", "6.1", "6.3", "6.4", "7.0", "7.1"),
				axis("arch", "gfx90a", "gfx942"), axis("mpi", "on", "off"),
			},
			Compatible: []recipe.Rule{
				{When: recipe.Condition{"arch": "gfx942"}, Needs: recipe.Condition{"rocm": ">=6.1"}},
				{When: recipe.Condition{"rocm": ">=7.1"}, Needs: recipe.Condition{"mpi": "none"}},
			},
			Variants: []recipe.Variant{{When: recipe.Condition{"rocm": ">=6.4"}}},
		}, []patch.Patch{
			{Name: "a", When: map[string]string{"gcc": ">=13"}, Merged: ">0.7"},
		}
}

// points adds a compiler to each cell, as an image does.
func points(cells []matrix.Cell) []ci.Point {
	var all []ci.Point
	for _, c := range cells {
		facts := map[string]string{"gcc": "12.2"}
		if version.Allows(">=6.1", c.Axes["rocm"]) {
			facts["gcc"] = "13.3"
		}
		if version.Allows(">=6.4", c.Axes["rocm"]) {
			facts["gcc"] = "14.2"
		}
		maps.Copy(facts, c.Axes)
		all = append(all, ci.Point{Cell: c, Facts: facts})
	}
	return all
}

func TestCondense(t *testing.T) {
	r, patches := stack()
	cells, _ := whole(r)
	pairs := ci.Pairs(points(cells), patches)
	want := []ci.Pair{
		{"arch", "gfx90a"},
		{"arch", "gfx942"}, // words
		{"gcc", "12.2"},
		{"gcc", "13.3"},
		{"gcc", "14.2"}, // the patch's boundary, and the newest
		{"mpi", "off"},
		{"mpi", "on"},
		// The rule's boundary is 6.1, the variant's 6.4; the others are the ends. 7.1
		// is in no cell, and no condition names 6.2.
		{"rocm", "5.7"},
		{"rocm", "6.0"},
		{"rocm", "6.1"},
		{"rocm", "6.3"},
		{"rocm", "6.4"},
		{"rocm", "7.0"},
		{"version", "0.5"},
		{"version", "0.7"},
		{"version", "0.8"},
		{"version", "0.9"}, // merged after 0.7
	}
	diff := cmp.Diff(want, pairs)
	must.Hold(t, diff == "", "(-want +got):\n%s", diff)
	few := ci.Condense(points(cells), patches, nil)
	ids := []string{
		"stack-0.5-rocm6.0-gfx90a-on", "stack-0.7-rocm6.4-gfx90a-on", "stack-0.8-rocm6.1-gfx942-off",
		"stack-0.9-rocm5.7-gfx90a-on", "stack-0.9-rocm6.3-gfx90a-on", "stack-0.9-rocm7.0-gfx90a-on",
	}
	check.Same(t, "values", ids, idsOf(few))
}

func TestCondenseNothing(t *testing.T) {
	few := ci.Condense(nil, nil, nil)
	check.That(t, len(few) == 0, "%v", few)
}

func idsOf(points []ci.Point) []string {
	ids := make([]string, len(points))
	for i, p := range points {
		ids[i] = p.ID
	}
	return ids
}

// anyMatrix returns the whole matrix of a recipe with patches, and with a fact named
// only by patches.
func anyMatrix(t *rapid.T) ([]ci.Point, []patch.Patch) {
	r := anyRecipe().Draw(t, "recipe")
	cells, _ := whole(r)
	var all []ci.Point
	for _, c := range cells {
		facts := map[string]string{"gcc": rapid.SampledFrom([]string{"11.4", "12.2", "13.3", "14.2"}).Draw(t, "gcc of "+c.ID)}
		maps.Copy(facts, c.Axes)
		all = append(all, ci.Point{Cell: c, Facts: facts})
	}
	var patches []patch.Patch
	for range rapid.IntRange(0, 3).Draw(t, "patches") {
		p := patch.Patch{When: anyCondition(t, r, "patch")}
		if rapid.Bool().Draw(t, "on the compiler") {
			p.When["gcc"] = rapid.SampledFrom([]string{">=13", ">=12,<14", "!=12.2"}).Draw(t, "gcc")
		}
		patches = append(patches, p)
	}
	return all, patches
}

// A condensed matrix holds every value of Pairs that no proven cell holds. Each of its
// cells is a cell of the matrix, occurs once and is necessary.
func TestCondenseHoldsWhatIsWanted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, patches := anyMatrix(t)
		if len(all) == 0 {
			t.Skip("no cells")
		}
		proven, done := map[string]bool{}, []ci.Point{}
		for _, p := range all {
			if rapid.IntRange(0, 9).Draw(t, p.ID+" is proven") == 0 {
				proven[p.ID], done = true, append(done, p)
			}
		}
		few := ci.Condense(all, patches, proven)
		want := lacks(done, ci.Pairs(all, patches))
		if lost := lacks(few, want); len(lost) > 0 {
			t.Errorf("%v lack %v", idsOf(few), lost)
		}
		for i := range few {
			others := slices.Delete(slices.Clone(few), i, i+1)
			if len(lacks(others, want)) == 0 {
				t.Errorf("%s is needless in %v", few[i].ID, idsOf(few))
			}
		}
		known, got := idsOf(all), idsOf(few)
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Errorf("%v are not sorted, or one is there twice", got)
		}
		for _, id := range got {
			if !slices.Contains(known, id) {
				t.Errorf("%s is no cell", id)
			}
		}
	})
}

// lacks returns the pairs that no point has.
func lacks(few []ci.Point, want []ci.Pair) []ci.Pair {
	return slices.DeleteFunc(slices.Clone(want), func(p ci.Pair) bool {
		return slices.ContainsFunc(few, func(point ci.Point) bool { return point.Facts[p.Axis] == p.Value })
	})
}

// The result is repeatable and does not depend on the order of cells, patches and
// rules.
func TestCondenseDependsOnNoOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, patches := anyMatrix(t)
		few := ci.Condense(all, patches, nil)
		if len(all) > 0 {
			turned := *all[0].Recipe
			turned.Compatible = rapid.Permutation(turned.Compatible).Draw(t, "rules in another order")
			all = slices.Clone(all)
			for i := range all {
				all[i].Recipe = &turned
			}
		}
		again := ci.Condense(rapid.Permutation(all).Draw(t, "cells in another order"), rapid.Permutation(patches).Draw(t, "patches in another order"), nil)
		if diff := cmp.Diff(idsOf(few), idsOf(again)); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
	})
}
