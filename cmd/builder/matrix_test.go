package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/plan/ci"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/must"
)

// TestMatrixGolden records the cells built for a pull request and the number of all
// cells. If a change of a recipe, a rule or a patch affects either, review shows it.
// -update rewrites the file.
func TestMatrixGolden(t *testing.T) {
	type condensed struct {
		Recipe string            `json:"recipe"`
		Cells  int               `json:"cells"`  // of the whole matrix
		Values map[string]string `json:"values"` // values in the condensed matrix
		Few    []string          `json:"condensed"`
	}
	cat := builtIn()
	var all []condensed
	for _, r := range cat.Recipes {
		cells, _, err := matrix.Expand(r, matrix.Everything(r))
		must.Succeed(t, err)
		points := must.Get(ci.Points(cat, cells))(t)
		pairs := ci.Pairs(points, cat.Patches[r.Name])
		few := ci.Condense(points, cat.Patches[r.Name], nil)
		c := condensed{Recipe: r.Name, Cells: len(cells), Values: map[string]string{}}
		for _, p := range pairs {
			c.Values[p.Axis] = strings.TrimSpace(c.Values[p.Axis] + " " + p.Value)
		}
		for _, p := range few {
			c.Few = append(c.Few, p.ID)
		}
		all = append(all, c)
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	must.Succeed(t, enc.Encode(all))
	golden.CheckFile(t, filepath.Join("testdata", "matrix.golden.json"), text.Bytes())
}

// Every cell of every recipe must fit into the matrices named by the hint of matrix.
func TestEveryCellHasAMatrix(t *testing.T) {
	cat := builtIn()
	jobs, err := ci.Jobs(cat, ci.MatrixRequest{Recipes: cat.Recipes, All: true}, t.Errorf)
	must.Succeed(t, err)
	_, err = ci.GitHub(jobs, jobs)
	_, hint, _ := strings.Cut(diag.All(err)[0].Hint, " --shard 1/")
	n := must.Get(strconv.Atoi(strings.Fields(hint)[0]))(t)
	fitMatrices(t, jobs, n)
	seen := map[string]bool{}
	for _, j := range jobs {
		check.That(t, !seen[j.Artifact()], "two artifacts are called %s", j.Artifact())
		seen[j.Artifact()] = true
	}
}

// Every part of the example for many cells is a matrix that GitHub takes.
func TestPartsFitAMatrix(t *testing.T) {
	text := must.Get(os.ReadFile("../../docs/examples/actions/parts.yml"))(t)
	found := regexp.MustCompile(`cells: "(\w+) --shard [^/]*/(\d+)"`).FindStringSubmatch(string(text))
	must.Hold(t, found != nil, "no cells in\n%s", text)
	parts, err := strconv.Atoi(found[2])
	must.Hold(t, err == nil && parts > 1, "%q parts", found[2])
	r := must.Get(recipe.Find(builtIn().Recipes, found[1]))(t)
	jobs := must.Get(ci.Jobs(builtIn(), ci.MatrixRequest{Recipes: []*recipe.Recipe{r}}, t.Errorf))(t)
	fitMatrices(t, jobs, parts)
}

// fitMatrices fails if GitHub does not take a part of the jobs.
func fitMatrices(t *testing.T, jobs []ci.Job, n int) {
	t.Helper()
	for i := range n {
		part := slices.DeleteFunc(slices.Clone(jobs), func(j ci.Job) bool { return !(ci.Shard{Index: i + 1, Count: n}).Holds(j.ID) })
		_, err := ci.GitHub(jobs, part)
		check.That(t, err == nil, "part %d of %d: %v", i+1, n, err)
	}
}
