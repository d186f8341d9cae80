package stack

import (
	"slices"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

const good = `name: pair
summary: two of a kind
image: base
profile: {name: train, axes: {rocm: "6.1"}}
parts:
  - {recipe: ray, axes: {version: "2.12.0", rocm: "6.1"}}
  - {recipe: horovod, axes: {rocm: "6.1"}}
agree: [rocm, python, mpi]
extra: ["click==8.1.7"]
provided:
  - {project: torch, because: the site brings it}
`

// recipes returns two recipes with common axes.
func recipes(t *testing.T) []*recipe.Recipe {
	t.Helper()
	text := func(name, project, more string) *recipe.Recipe {
		r, err := recipe.Parse("recipes/"+name+".yaml", []byte(`name: `+name+`
summary: a recipe
homepage: https://mirror.example/
id: "`+name+`-{{version}}+rocm{{rocm}}-{{python}}"
axes:
  - {name: version, about: release, values: ["2.12.0", "2.9.3"]}
  - {name: rocm, about: ROCm, values: ["6.1", "5.7"]}
  - {name: python, about: CPython, values: ["3.11"`+more+`]}
source: {project: `+project+`, version: "{{version}}", released: {"2.12.0": "2024-04-25", "2.9.3": "2024-02-22"}}
from: {kind: sdist}
build: make
image: base
runtime: base
`), nil)
		must.Succeed(t, err)
		return r
	}
	return []*recipe.Recipe{text("ray", "ray", ""), text("horovod", "Horovod", `, "3.12"`)}
}

// known returns the catalogue of the tests.
func known(t *testing.T) Catalogue {
	t.Helper()
	return Catalogue{recipes(t), func(name string, axes map[string]string) (string, error) {
		if name != "train" {
			return "", diag.Errorf(diag.Usage, "unknown profile %q", name)
		}
		return "ROCM=" + axes["rocm"] + "\n", nil
	}}
}

func parse(t *testing.T, text string) *Stack {
	t.Helper()
	s, err := Parse("stacks/pair.yaml", []byte(text))
	must.Succeed(t, err)
	return s
}

func TestRecipe(t *testing.T) {
	r, err := parse(t, good).Recipe(known(t))
	must.Succeed(t, err)
	check.That(t, r.Name == "stack/pair" && r.ID == r.Name && r.Image == "base" && r.Runtime == "base" && r.From.Kind == recipe.Cells,
		"%+v", r)
	// An axis not named by the stack still has a value. A later change of the recipe's
	// preference then leaves the lock of the stack unchanged.
	if in := r.Inputs; len(in) != 2 || in[0].Axes["version"] != "2.12.0" || in[1].Axes["version"] != "2.12.0" || in[1].Axes["python"] != "3.11" {
		t.Errorf("%+v", in)
	}
	check.That(t, slices.Equal(r.AxisNames(), []string{"rocm", "python"}) && r.Axes[0].Values[0] == "6.1", "%+v", r.Axes)
	if want := []string{"ray", "Horovod", "torch"}; !slices.Equal(r.Requires.Without, want) || !slices.Equal(r.Requires.Run, []string{"click==8.1.7"}) {
		t.Errorf("%+v", r.Requires)
	}
	house := r.Expect.Wheelhouse
	check.That(t, house.Format == Format && house.Profile == "ROCM=6.1\n" && house.Provided[0].Project == "torch", "%+v", house)
}

// Recipe reports all disagreements between the parts before anything is built.
func TestRecipeRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, with, want string }{
		"no such recipe":  {"recipe: ray,", "recipe: rya,", `stacks/pair.yaml:6:5: unknown recipe "rya"`},
		"no such axis":    {`version: "2.12.0"`, `verson: "2.12.0"`, `stacks/pair.yaml:6:5: recipe ray has no axis "verson"`},
		"no such value":   {`version: "2.12.0"`, `version: "9"`, "stacks/pair.yaml:6:5: --version: "},
		"several cells":   {`version: "2.12.0"`, `version: all`, "stacks/pair.yaml:6:5: recipe ray: the axes select 2 cells, and an input or a part is one cell"},
		"another ROCm":    {`horovod, axes: {rocm: "6.1"}`, `horovod, axes: {rocm: "5.7"}`, "stacks/pair.yaml:8:9: rocm is 5.7 in horovod-2.12.0+rocm5.7-3.11 and 6.1 in ray-2.12.0+rocm6.1-3.11"},
		"no such profile": {"name: train", "name: rain", `stacks/pair.yaml:4:10: unknown profile "rain"`},
		"another profile": {`train, axes: {rocm: "6.1"}`, `train, axes: {rocm: "5.7"}`, "rocm is 5.7 in profile train and 6.1 in ray-2.12.0+rocm6.1-3.11, horovod-2.12.0+rocm6.1-3.11"},
		"an unknown fact": {"mpi]", "mip]", `stacks/pair.yaml:8:23: "mip" is not an axis of a part or a fact about wheels`},
	} {
		_, err := parse(t, strings.Replace(good, c.text, c.with, 1)).Recipe(known(t))
		check.That(t, diag.CodeOf(err) == diag.Usage && strings.Contains(err.Error(), c.want), "%s: %v", name, err)
	}
	text := strings.Replace(good, `horovod, axes: {rocm: "6.1"}`, `horovod, axes: {rocm: "5.7", python: "3.12"}`, 1)
	_, err := parse(t, text).Recipe(known(t))
	check.That(t, len(diag.All(err)) == 2, "want two faults: %v", err)
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, with, want string }{
		"another name":       {"name: pair", "name: pear", `stacks/pair.yaml:1:7: the stack has the name "pear", and its file "pair"`},
		"no image":           {"image: base\n", "", "image is missing"},
		"no summary":         {"summary: two of a kind", `summary: ""`, "stacks/pair.yaml:2:10: summary is missing"},
		"a stack in a stack": {"recipe: ray", "recipe: stack/ray", "stacks/pair.yaml:6:5: a part must name a recipe other than a stack"},
		"agreement twice":    {"mpi]", "rocm]", `stacks/pair.yaml:8:23: "rocm" occurs twice`},
		"no reason":          {", because: the site brings it", "", "stacks/pair.yaml:11:5: provided.because is missing"},
		"no project":         {"project: torch", `project: "torch; x"`, `stacks/pair.yaml:11:5: "torch; x" is not the name`},
		"a project twice":    {"provided:\n", "provided:\n  - {project: Torch, because: x}\n", "stacks/pair.yaml:12:5: torch occurs twice"},
	} {
		_, err := Parse("stacks/pair.yaml", []byte(strings.Replace(good, c.text, c.with, 1)))
		check.That(t, diag.CodeOf(err) == diag.Usage && strings.Contains(err.Error(), c.want), "%s: %v", name, err)
	}
	_, err := Parse("stacks/empty.yaml", []byte("name: x\n"))
	check.That(t, len(diag.All(err)) == 4, "want name, summary, image and parts: %v", err)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("parts: [{recipe: a, axes: {x: \"1\"}}]\nagree: [x, x]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("stacks/pair.yaml", data)
		check.That(t, (s == nil) != (err == nil), "%v, %v", s, err)
		check.That(t, err != nil || (s.Name == "pair" && len(s.Parts) != 0 && s.Image != ""), "took %+v", s)
	})
}
