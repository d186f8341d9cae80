package matrix_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"builder/internal/base/diag"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func axis(name string, values ...string) recipe.Axis {
	return recipe.Axis{Name: name, About: name, Values: values}
}

func rule(when, needs recipe.Condition, because string) recipe.Rule {
	return recipe.Rule{When: when, Needs: needs, Because: because, Source: "https://mirror.example/" + because}
}

// stack returns a recipe with incompatible preferred values: torch 2.10 needs a newer
// ROCm than the preferred one.
func stack() *recipe.Recipe {
	return &recipe.Recipe{
		Name: "stack", ID: "stack-rocm{{rocm}}-torch{{torch}}-{{cp}}-{{arch}}",
		Axes: []recipe.Axis{
			axis("torch", "2.10", "2.9"), axis("rocm", "5.7", "6.1.1", "6.1.3", "6.2"),
			axis("python", "3.12", "3.14t"), axis("arch", "gfx90a", "gfx942", "gfx1100"),
		},
		Compatible: []recipe.Rule{
			rule(recipe.Condition{"arch": "gfx942"}, recipe.Condition{"rocm": ">=6.0"}, "mi300"),
			rule(recipe.Condition{"torch": ">=2.10"}, recipe.Condition{"rocm": ">=6.1.3"}, "wheels"),
			rule(recipe.Condition{"rocm": "6.2", "python": "3.14t"}, recipe.Condition{"arch": "!=gfx1100", "torch": "2.10"}, "threads"),
		},
	}
}

func ids(cells []matrix.Cell) []string {
	var all []string
	for _, c := range cells {
		all = append(all, c.ID)
	}
	return all
}

func TestExpand(t *testing.T) {
	for name, c := range map[string]struct {
		filter   matrix.Filter
		cells    []string
		excluded []string // "flags: because"
	}{
		"no axis named: the first compatible combination": {
			nil,
			[]string{"stack-rocm6.1.3-torch2.10-cp312-gfx90a"},
			nil,
		},
		"all, and why not": {
			matrix.Filter{"rocm": "all", "torch": "all"},
			[]string{
				"stack-rocm5.7-torch2.9-cp312-gfx90a", "stack-rocm6.1.1-torch2.9-cp312-gfx90a", "stack-rocm6.1.3-torch2.10-cp312-gfx90a",
				"stack-rocm6.1.3-torch2.9-cp312-gfx90a", "stack-rocm6.2-torch2.10-cp312-gfx90a", "stack-rocm6.2-torch2.9-cp312-gfx90a",
			},
			[]string{"--rocm 5.7 --torch 2.10: wheels", "--rocm 6.1.1 --torch 2.10: wheels"},
		},
		"a rule with one open condition of two": {
			matrix.Filter{"rocm": "6.2", "python": "3.14t", "arch": "all"},
			[]string{"stack-rocm6.2-torch2.10-cp314t-gfx90a", "stack-rocm6.2-torch2.10-cp314t-gfx942"},
			[]string{"--arch gfx1100 --python 3.14t --rocm 6.2: threads"},
		},
		"a reason omits unrelated axes": {
			matrix.Filter{"rocm": "5.7,6.2", "torch": "2.10", "arch": "gfx942"},
			[]string{"stack-rocm6.2-torch2.10-cp312-gfx942"},
			[]string{"--rocm 5.7 --torch 2.10: wheels"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cells, excluded, err := matrix.Expand(stack(), c.filter)
			must.Succeed(t, err)
			check.Same(t, "cells", c.cells, ids(cells))
			var why []string
			for _, e := range excluded {
				why = append(why, e.String()+": "+e.Because)
				check.That(t, e.Source == "https://mirror.example/"+e.Because, "the source of %s is %q", e.Because, e.Source)
			}
			slices.Sort(why)
			check.Same(t, "excluded", c.excluded, why)
		})
	}
}

func TestCell(t *testing.T) {
	r := stack()
	cells, _, err := matrix.Expand(r, matrix.Filter{"rocm": "6.2", "python": "3.14t"})
	must.Hold(t, err == nil && len(cells) == 1, "%v, %v", ids(cells), err)
	want := matrix.Cell{
		Recipe: r, ID: "stack-rocm6.2-torch2.10-cp314t-gfx90a",
		Axes:   map[string]string{"torch": "2.10", "rocm": "6.2", "python": "3.14t", "arch": "gfx90a"},
		Names:  map[string]string{"torch": "2.10", "rocm": "6.2", "python": "3.14t", "arch": "gfx90a", "cp": "cp314t"},
		Chosen: []string{"torch", "arch"}, // the open axes, in the order of the recipe
	}
	check.Same(t, "values", want, cells[0], cmp.Comparer(func(a, b *recipe.Recipe) bool { return a == b }))
	// Cells share no maps, so a caller may change one.
	cells[0].Axes["rocm"] = "5.7"
	again, _, err := matrix.Expand(r, matrix.Filter{"rocm": "6.2", "python": "3.14t"})
	check.That(t, err == nil && again[0].Axes["rocm"] == "6.2", "%v, %v", again, err)
}

// TestExpandOffersTheNearest: a refusal names every broken rule, and the cells that keep the
// most of the request.
func TestExpandOffersTheNearest(t *testing.T) {
	_, _, err := matrix.Expand(stack(), matrix.Filter{"rocm": "5.7", "torch": "2.10", "arch": "gfx942"})
	all := diag.All(err)
	must.Hold(t, len(all) == 3, "%+v", all)
	check.That(t, strings.HasSuffix(all[0].Error(), "--arch gfx942 --rocm 5.7 cannot be built: mi300"), "%v", all[0])
	check.That(t, strings.HasSuffix(all[1].Error(), "--rocm 5.7 --torch 2.10 cannot be built: wheels"), "%v", all[1])
	check.Same(t, "the nearest cells", "the nearest cells are `builder plan stack --arch gfx942 --rocm 6.1.3 --torch 2.10` and `builder plan stack --arch gfx942 --rocm 6.2 --torch 2.10`", all[2].Hint)
}

// TestHasAgreesWithExpand: both know of the same cells.
func TestHasAgreesWithExpand(t *testing.T) {
	for _, filter := range []matrix.Filter{nil, {"rocm": "5.7", "torch": "2.10"}, {"rocm": "all", "torch": "2.10"}, {"rocm": "9"}, {"rcom": "5.7"}} {
		_, _, err := matrix.Expand(stack(), filter)
		check.That(t, matrix.Has(stack(), filter) == (err == nil), "%v: %v", filter, err)
	}
}

// TestEverythingLeavesOptionsOut: only its own flag gives an option another value.
func TestEverythingLeavesOptionsOut(t *testing.T) {
	r := stack()
	r.Axes[3].Option = true
	cells, _, err := matrix.Expand(r, matrix.Everything(r))
	must.Succeed(t, err)
	check.That(t, len(cells) > 1 && !slices.ContainsFunc(cells, func(c matrix.Cell) bool { return c.Axes["arch"] != "gfx90a" }), "%v", ids(cells))
	cells, _, err = matrix.Expand(r, matrix.Filter{"arch": "gfx1100"})
	check.That(t, err == nil && cells[0].Axes["arch"] == "gfx1100", "%v, %v", cells, err)
}

func TestExpandRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		filter      matrix.Filter
		says, hints []string
	}{
		"an unknown axis": {
			matrix.Filter{"rcom": "6.1"},
			[]string{`recipe stack has no axis "rcom"`},
			[]string{`did you mean "rocm"? known: torch, rocm, python, arch`},
		},
		"an unknown value": {
			matrix.Filter{"arch": "gfx90b"},
			[]string{`--arch: "gfx90b" is not a known value`},
			[]string{`did you mean "gfx90a"? known: gfx90a, gfx942, gfx1100`},
		},
		"several faults at once, in the order of the recipe": {
			matrix.Filter{"rcom": "6.1", "arhc": "x", "python": "3.99", "torch": ""},
			[]string{`no axis "arhc"`, `no axis "rcom"`, "--torch: the value is empty", `--python: "3.99" is not`},
			[]string{"arch", "rocm", "2.10", "3.12"},
		},
		"incompatible combinations": {
			matrix.Filter{"rocm": "5.7", "arch": "gfx942", "torch": "all"},
			[]string{"stack --rocm 5.7 --torch 2.10 cannot be built: wheels", "--arch gfx942 --rocm 5.7 --torch 2.9 cannot be built: mi300", "stack has no cell for --arch gfx942 --rocm 5.7 --torch 2.10,2.9"},
			[]string{"https://mirror.example/wheels", "https://mirror.example/mi300", "builder plan stack --arch gfx90a --rocm 5.7 --torch 2.9"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cells, _, err := matrix.Expand(stack(), c.filter)
			errs := diag.All(err)
			must.Hold(t, len(cells) == 0 && diag.CodeOf(err) == diag.Usage && len(errs) == len(c.says), "%v, %v", ids(cells), err)
			for i, f := range errs {
				check.That(t, strings.Contains(f.Error(), c.says[i]) && strings.Contains(f.Hint, c.hints[i]),
					"fault %d is %q, hint %q", i, f.Error(), f.Hint)
			}
		})
	}
}

// The reason is the rule about both named axes, not the one that the first value of an
// open axis breaks.
func TestReasonNamesTheNamed(t *testing.T) {
	r := stack()
	when := recipe.Condition{"rocm": "6.1.3"}
	r.Compatible = append(r.Compatible,
		rule(when, recipe.Condition{"python": "3.14t"}, "python"),
		recipe.Rule{When: when, OneOf: []recipe.Condition{{"torch": "2.10"}, {"arch": "gfx9000"}}, Because: "torch", Source: "https://mirror.example/torch"})
	_, excluded, err := matrix.Expand(r, matrix.Filter{"rocm": "6.1.3", "torch": "2.9"})
	check.That(t, diag.CodeOf(err) == diag.Usage && len(excluded) == 1 && excluded[0].Because == "torch", "%v, %v", excluded, err)
}

// A rule may exclude values of open axes only.
func TestNothingGoesTogether(t *testing.T) {
	r := stack()
	r.Compatible = append(r.Compatible, rule(recipe.Condition{"rocm": ">=5"}, recipe.Condition{"arch": "gfx9000"}, "never"))
	_, excluded, err := matrix.Expand(r, matrix.Filter{"torch": "2.9"})
	check.Same(t, "hint", "https://mirror.example/never", diag.All(err)[0].Hint)
	check.That(t, diag.CodeOf(err) == diag.Usage && len(excluded) == 1 && excluded[0].String() == "--torch 2.9" && excluded[0].Because == "never",
		"%v, %v", excluded, err)
	_, _, err = matrix.Expand(r, nil)
	check.That(t, diag.CodeOf(err) == diag.Usage, "%v", err)
}

func TestCellsThatShareAnID(t *testing.T) {
	r := stack()
	r.ID = "stack-rocm{{rocm}}-{{cp}}"
	_, _, err := matrix.Expand(r, matrix.Filter{"rocm": "5.7,6.2", "torch": "all", "arch": "gfx90a,gfx942"})
	e, ok := errors.AsType[*diag.Error](err)
	if !ok || e.Code != diag.Usage || !strings.Contains(e.Hint, "id") ||
		err.Error() != "recipe stack: different cells have the id stack-rocm6.2-cp312: they differ in torch, arch" {
		t.Errorf("got %v", err)
	}
	// One of them alone is not an error.
	if cells, _, err := matrix.Expand(r, matrix.Filter{"rocm": "all"}); err != nil || len(cells) != 4 {
		t.Errorf("%v, %v", ids(cells), err)
	}
}

func TestUnknownNameInTheID(t *testing.T) {
	r := stack()
	r.ID = "stack-{{rcom}}"
	cells, _, err := matrix.Expand(r, matrix.Filter{"rocm": "all", "arch": "all"})
	check.That(t, len(cells) == 0 && len(diag.All(err)) == 1 && strings.Contains(err.Error(), `unknown name "rcom"`),
		"%v, %v", ids(cells), err)
}

// A table lists compatible combinations. A request outside it gets an error with the
// matching rows.
func TestTable(t *testing.T) {
	r := stack()
	r.Compatible = []recipe.Rule{{
		When: recipe.Condition{"rocm": ">=5.7"},
		OneOf: []recipe.Condition{
			{"rocm": "5.7", "torch": "2.6"}, {"rocm": "6.2", "torch": "2.10", "python": "3.14t"}, {"rocm": "6.2", "torch": "2.6", "python": "3.12"},
		},
		Because: "no other wheels exist", Source: "https://mirror.example/table",
	}}
	cells, _, err := matrix.Expand(r, matrix.Filter{"rocm": "6.2", "torch": "all"})
	must.Hold(t, err == nil && len(cells) != 0, "%v %v", cells, err)
	for _, c := range cells {
		check.That(t, c.Axes["torch"] != "2.10" || c.Axes["python"] == "3.14t", "%s is in no row", c.ID)
	}
	_, excluded, err := matrix.Expand(r, matrix.Filter{"rocm": "6.2", "torch": "2.10", "python": "3.12"})
	want := []string{"python is 3.14t, rocm is 6.2, torch is 2.10", "python is 3.12, rocm is 6.2, torch is 2.6"}
	check.That(t, err != nil && len(excluded) == 1 && slices.Equal(excluded[0].Instead, want), "got %+v, %v", excluded, err)
	hint := diag.All(err)[0].Hint
	check.That(t, strings.Contains(hint, want[0]) && strings.Contains(hint, "https://mirror.example/table"), "hint %q", hint)

	// A row without an axis of the condition applies to all its values. Only the first
	// rows of a long table are shown.
	for i := range 9 {
		r.Compatible[0].OneOf = append(r.Compatible[0].OneOf, recipe.Condition{"torch": fmt.Sprintf("1.%d", i)})
	}
	_, excluded, _ = matrix.Expand(r, matrix.Filter{"rocm": "5.7", "torch": "2.10"})
	want = []string{"rocm is 5.7, torch is 2.6"}
	for i := range 7 {
		want = append(want, fmt.Sprintf("torch is 1.%d", i))
	}
	check.That(t, len(excluded) == 1 && slices.Equal(excluded[0].Instead, want), "got %+v", excluded)
}

// Vars of a recipe may contain axes, and variants add vars.
func TestNames(t *testing.T) {
	r := stack()
	r.ID = "stack-{{platform}}-torch{{torch}}-{{cp}}-{{arch}}"
	r.Vars = map[string]string{"platform": "rocm{{rocm}}"}
	for _, v := range [][2]string{{"gfx942", "MI300"}, {"gfx90a", "MI250-{{cp}}"}, {"gfx1100", "W7900"}} {
		r.Variants = append(r.Variants, recipe.Variant{
			When: recipe.Condition{"arch": v[0]}, Settings: recipe.Settings{Vars: map[string]string{"card": v[1]}},
		})
	}
	cells, _, err := matrix.Expand(r, matrix.Filter{"rocm": "6.2", "python": "3.14t", "arch": "gfx90a"})
	check.That(t, err == nil && cells[0].ID == "stack-rocm6.2-torch2.10-cp314t-gfx90a" && cells[0].Names["card"] == "MI250-cp314t",
		"got %+v, %v", cells, err)
}

// An id is a folder name below --out.
func TestIDsAreNamesOfFolders(t *testing.T) {
	for id, good := range map[string]bool{"a.b_c+d-1": true, "../a": false, "a/b": false, "": false, ".a": false, "-a": false, "a b": false, "a\n": false, "ä": false} {
		r := stack()
		r.ID = id
		_, _, err := matrix.Expand(r, matrix.Filter{"rocm": "6.2"})
		check.That(t, (err == nil) == good && (good || diag.CodeOf(err) == diag.Usage), "%q: got %v", id, err)
	}
}

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
