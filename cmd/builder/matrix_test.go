package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/plan/ci"
	"builder/internal/plan/matrix"
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
		points, err := ci.Points(cat, cells)
		must.Succeed(t, err)
		pairs, err := ci.Pairs(points, cat.Patches[r.Name])
		must.Succeed(t, err)
		few, err := ci.Condense(points, cat.Patches[r.Name])
		must.Succeed(t, err)
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
	var ids []string
	seen := map[string]bool{}
	for _, j := range jobs {
		ids = append(ids, j.ID)
		if name := j.Artifact(); seen[name] {
			t.Errorf("two artifacts are called %s", name)
		} else {
			seen[name] = true
		}
	}
	n := ci.ShardsFor(ids, ci.GitHubJobs)
	dealt := 0
	for i := range n {
		part := 0
		for _, id := range ids {
			if (ci.Shard{Index: i + 1, Count: n}).Holds(id) {
				part++
			}
		}
		if dealt += part; part > ci.GitHubJobs {
			t.Errorf("part %d of %d has %d jobs", i+1, n, part)
		}
	}
	check.That(t, dealt == len(jobs) && n != 0, "%d jobs, %d dealt out to %d matrices", len(jobs), dealt, n)
}
