package recipes_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// framework is a row of frameworks.json: what the Python index says of a release.
type framework struct {
	Project string   `json:"project"`
	Release string   `json:"release"`
	Pythons []string `json:"pythons"`
	CUDA    string   `json:"cuda"`
	NCCL    string   `json:"nccl"`
}

// unbuilt are the CPythons without a cell, with the words of the reason.
var unbuilt = map[string]string{
	"3.8":  "is not a known value",
	"3.15": "no package registry serves one with headers",
}

// TestEveryReleaseOfTheIndexHasACell: each pair of a framework release and a CPython of its
// wheels is one locked cell, or the refusal says why not.
func TestEveryReleaseOfTheIndexHasACell(t *testing.T) {
	data := must.Get(os.ReadFile("../test/frameworks/frameworks.json"))(t)
	var rows []framework
	must.Succeed(t, json.Unmarshal(data, &rows))
	must.Hold(t, len(rows) > 20, "%d rows", len(rows))
	horovod := must.Get(recipe.Find(load(t), "horovod"))(t)
	for _, row := range rows {
		for _, python := range row.Pythons {
			cells, _, err := matrix.Expand(horovod, matrix.Filter{row.Project: row.Release, "python": python, "cuda": "all"})
			if why, none := unbuilt[python]; none {
				check.That(t, err != nil && strings.Contains(err.Error(), why), "%s %s for CPython %s: %v", row.Project, row.Release, python, err)
				continue
			}
			if err != nil || len(cells) != 1 {
				t.Errorf("%s %s for CPython %s: %d cells, %v", row.Project, row.Release, python, len(cells), err)
				continue
			}
			row.agrees(t, cells[0])
		}
	}
}

// agrees compares a cell with the index: the major release of CUDA, and the NCCL that torch
// pins. TensorFlow pins none since 2.20.
func (f framework) agrees(t *testing.T, c matrix.Cell) {
	t.Helper()
	d := must.Get(lock.NewDraft(c, catalogue(t)))(t)
	major, _, _ := strings.Cut(f.CUDA, ".")
	check.That(t, c.Axes["cuda"] == major, "%s: CUDA %s, and the index has %s", c.ID, c.Axes["cuda"], f.CUDA)
	if f.Project == "torch" {
		check.That(t, d.Vars["nccl"] == f.NCCL, "%s: NCCL %s, and the index has %s", c.ID, d.Vars["nccl"], f.NCCL)
	}
}
