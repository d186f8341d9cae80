package ci_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"builder/internal/base/diag"
	"builder/internal/plan/ci"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func axis(name string, values ...string) recipe.Axis {
	return recipe.Axis{Name: name, About: name, Values: values}
}

// whole returns every cell of a recipe, and a filter that selects them.
func whole(r *recipe.Recipe) ([]matrix.Cell, matrix.Filter) {
	filter := matrix.Filter{}
	for _, name := range r.AxisNames() {
		filter[name] = "all"
	}
	cells, _, _ := matrix.Expand(r, filter) // an error means a matrix without cells
	return cells, filter
}

// anyRecipe has two to four axes with up to six values each, and rules and variants
// over them. Its id names every axis.
func anyRecipe() *rapid.Generator[*recipe.Recipe] {
	return rapid.Custom(func(t *rapid.T) *recipe.Recipe {
		r := &recipe.Recipe{Name: "any"}
		values := []string{"1.9", "1.10", "2.0", "2.0.1", "2.1", "2.2rc1", "3", "on", "gfx90a"}
		for i := range rapid.IntRange(2, 4).Draw(t, "axes") {
			name := string(rune('a' + i))
			r.Axes = append(r.Axes, axis(name, rapid.SliceOfNDistinct(rapid.SampledFrom(values), 1, 6, rapid.ID[string]).Draw(t, name)...))
			r.ID += "{{" + name + "}}_"
		}
		r.ID = strings.TrimSuffix(r.ID, "_")
		for range rapid.IntRange(0, 3).Draw(t, "rules") {
			written := recipe.Rule{When: anyCondition(t, r, "when"), Because: "so", Source: "https://mirror.example"}
			if rapid.Bool().Draw(t, "table") {
				written.OneOf = []recipe.Condition{anyCondition(t, r, "row"), anyCondition(t, r, "row")}
			} else {
				written.Needs = anyCondition(t, r, "needs")
			}
			r.Compatible = append(r.Compatible, written)
		}
		for range rapid.IntRange(0, 2).Draw(t, "variants") {
			r.Variants = append(r.Variants, recipe.Variant{When: anyCondition(t, r, "variant")})
		}
		return r
	})
}

func anyCondition(t *rapid.T, r *recipe.Recipe, label string) recipe.Condition {
	c := recipe.Condition{}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(r.AxisNames()), 1, 2, rapid.ID[string]).Draw(t, label) {
		c[name] = rapid.SampledFrom([]string{"1.9", ">=1.10", "<2", "!=2.0", "2.0", ">=2.1,<3", "on", "!=on", ">=9", "2.2rc1"}).Draw(t, label+" "+name)
	}
	return c
}

// The flags of a job select its cell and no other.
func TestFlagsChooseTheCellAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRecipe().Draw(t, "recipe")
		cells, _ := whole(r)
		for _, cell := range cells {
			job := must.Get(ci.NewJob(cell))(t)
			must.Hold(t, job.Flags[0] == r.Name && len(job.Flags) == 1+2*len(r.Axes), "flags %q", job.Flags)
			filter := matrix.Filter{}
			for i := 1; i < len(job.Flags); i += 2 {
				filter[strings.TrimPrefix(job.Flags[i], "--")] = job.Flags[i+1]
			}
			got, _, err := matrix.Expand(r, filter)
			must.Hold(t, err == nil && len(got) == 1 && got[0].ID == cell.ID,
				"%q chooses %d cells, %v; want %s", job.Flags, len(got), err, cell.ID)
		}
	})
}

func TestNewJob(t *testing.T) {
	r := &recipe.Recipe{Name: "lib", ID: "lib-{{version}}-{{kernels}}", Axes: []recipe.Axis{axis("version", "2.10", "2.9"), axis("kernels", "max", "sum")}}
	cells, _ := whole(r)
	job := must.Get(ci.NewJob(cells[0]))(t)
	data, err := json.Marshal(job)
	want := `{"id":"lib-2.10-max","recipe":"lib","axes":{"kernels":"max","version":"2.10"},"flags":["lib","--version","2.10","--kernels","max"]}`
	check.That(t, string(data) == want && err == nil, "got  %s, %v\nwant %s", data, err, want)
}

// A value that no flag can select is an error of the recipe. It must not become a job
// that builds another cell.
func TestAValueThatNoFlagSelects(t *testing.T) {
	cell := matrix.Cell{
		Recipe: &recipe.Recipe{Name: "lib", Axes: []recipe.Axis{axis("kernels", "sum,max", "sum", "max")}},
		ID:     "lib", Axes: map[string]string{"kernels": "sum,max"},
	}
	_, err := ci.NewJob(cell)
	e, ok := errors.AsType[*diag.Error](err)
	check.That(t, ok && e.Code == diag.Usage && e.Hint != "" && err.Error() == `recipe lib: no flag selects only the value "sum,max" of kernels`,
		"got %v", err)
}

var safe = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

func TestArtifact(t *testing.T) {
	a := ci.Job{ID: "horovod-0.28.1+rocm5.7-tf2.13.0-cp311", Recipe: "horovod"}
	check.Same(t, "the artifact", "horovod-0.28.1-rocm5.7-tf2.13.0-cp311-a813ea26", a.Artifact())
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z0-9][a-z0-9+._-]{0,9}`)
		b, c := ci.Job{ID: text.Draw(t, "id"), Recipe: text.Draw(t, "recipe")}, ci.Job{ID: text.Draw(t, "id"), Recipe: text.Draw(t, "recipe")}
		if !safe.MatchString(b.Artifact()) {
			t.Errorf("%s is no key", b.Artifact())
		}
		if same := b.ID == c.ID && b.Recipe == c.Recipe; same != (b.Artifact() == c.Artifact()) {
			t.Errorf("%v and %v are called %s and %s", b, c, b.Artifact(), c.Artifact())
		}
	})
}

// Absent must name requested values without a cell, because a list of jobs does not
// show missing ones.
func TestAbsent(t *testing.T) {
	r := &recipe.Recipe{
		Name: "lib", ID: "lib-{{rocm}}-{{arch}}", Axes: []recipe.Axis{axis("rocm", "5.7", "6.1", "6.2"), axis("arch", "gfx90a", "gfx942")},
		Compatible: []recipe.Rule{{When: recipe.Condition{"rocm": "5.7"}, Needs: recipe.Condition{"arch": "gfx90a"}}},
	}
	for text, want := range map[string][]ci.Pair{"5.7": {{"rocm", "5.7"}}, "6.2": nil, "all": {{"rocm", "5.7"}}, "": nil} {
		filter := matrix.Filter{"rocm": "all", "arch": "gfx942"}
		cells, _, err := matrix.Expand(r, filter)
		must.Succeed(t, err)
		if filter["rocm"] = text; text == "" {
			delete(filter, "rocm")
		}
		check.Same(t, fmt.Sprintf("--rocm %s", text), want, ci.Absent(r, filter, cells))
	}
	cells, filter := whole(r)
	absent := ci.Absent(r, filter, cells)
	check.That(t, len(absent) == 0, "%v", slices.Collect(slices.Values(absent)))
}
