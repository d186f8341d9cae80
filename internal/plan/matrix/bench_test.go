package matrix_test

import (
	"fmt"
	"testing"

	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
)

// wide returns a recipe with five axes and typical rules. It has 140,000 combinations,
// of which 104,000 are cells.
func wide() *recipe.Recipe {
	r := &recipe.Recipe{Name: "wide", ID: "wide-{{version}}+rocm{{rocm}}-tf{{tensorflow}}-{{cp}}-{{arch}}"}
	for _, axis := range []struct {
		name, format string
		values       int
	}{
		{"version", "0.%d.1", 10}, {"rocm", "6.%d", 10}, {"tensorflow", "2.%d.0", 10}, {"python", "3.%d", 14}, {"arch", "gfx9%02d", 10},
	} {
		a := recipe.Axis{Name: axis.name}
		for i := range axis.values {
			a.Values = append(a.Values, fmt.Sprintf(axis.format, axis.values-1-i))
		}
		r.Axes = append(r.Axes, a)
	}
	for i := range 10 {
		r.Compatible = append(r.Compatible, rule(
			recipe.Condition{"rocm": fmt.Sprintf("6.%d", i)},
			recipe.Condition{"tensorflow": fmt.Sprintf(">=2.%d", i/2), "python": ">=3.1"}, fmt.Sprintf("rule %d", i),
		))
	}
	return r
}

// BenchmarkExpand measures the work of plan for more than a hundred thousand requested
// combinations, without printing.
func BenchmarkExpand(b *testing.B) {
	r := wide()
	filter := matrix.Filter{}
	for _, name := range r.AxisNames() {
		filter[name] = "all"
	}
	for b.Loop() {
		cells, excluded, err := matrix.Expand(r, filter)
		if err != nil || len(cells) != 104_000 || len(excluded) == 0 {
			b.Fatalf("%d cells, %d excluded, %v", len(cells), len(excluded), err)
		}
	}
}

// BenchmarkExpandOne measures the search for the first compatible combination if the
// preferred values are not compatible.
func BenchmarkExpandOne(b *testing.B) {
	r := wide()
	r.Compatible = append(r.Compatible, rule(
		recipe.Condition{"version": ">=0.1"}, recipe.Condition{"arch": "gfx900"}, "the last of the last",
	))
	for b.Loop() {
		if cells, _, err := matrix.Expand(r, nil); err != nil || len(cells) != 1 {
			b.Fatalf("%d cells, %v", len(cells), err)
		}
	}
}
