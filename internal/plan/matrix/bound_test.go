package matrix_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// square returns a recipe without rules, in which all values are compatible.
func square(axes, values int) *recipe.Recipe {
	r := &recipe.Recipe{Name: "square"}
	for i := range axes {
		a := recipe.Axis{Name: fmt.Sprintf("axis%d", i)}
		for j := range values {
			a.Values = append(a.Values, fmt.Sprintf("%d.0", j))
		}
		r.Axes, r.ID = append(r.Axes, a), r.ID+"x{{"+a.Name+"}}"
	}
	return r
}

// A search without an end is stopped, and takes little memory until then.
func TestAnEndlessSearchIsStopped(t *testing.T) {
	r := square(12, 40)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := matrix.Expand(r, matrix.Everything(r))
	runtime.ReadMemStats(&after)
	must.Hold(t, diag.CodeOf(err) == diag.Usage && strings.Contains(err.Error(), "takes more than"), "%v", err)
	spent := after.TotalAlloc - before.TotalAlloc
	check.That(t, spent <= 1<<30, "%d bytes were spent", spent)
	filter := matrix.Everything(r)
	for _, name := range r.AxisNames()[2:] {
		filter[name] = "1.0"
	}
	cells, _, err := matrix.Expand(r, filter)
	check.That(t, err == nil && len(cells) == 1600, "%d cells, %v", len(cells), err)
}
