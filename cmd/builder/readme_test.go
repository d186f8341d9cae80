package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/internal/app/plan"
	"builder/internal/files/elf"
	"builder/internal/files/linux"
	"builder/internal/plan/assemble"
	"builder/internal/plan/ci"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/proven"
	"builder/internal/plan/recipe"
	versions "builder/internal/plan/version"
	"builder/recipes"
	"builder/test/kit/golden"
	"builder/test/kit/must"
)

// TestReadmeTable compares the tables of the README with the catalogue and the record of
// built cells. -update rewrites them.
func TestReadmeTable(t *testing.T) {
	golden.CheckSection(t, filepath.Join(repositoryRoot, "README.md"),
		"<!-- written by go test ./cmd/builder -run ReadmeTable -update -->\n", "<!-- end -->\n", frameworkTable(t)+"\n"+otherTable(t))
}

// TestChoosingTable compares the table of Horovod on the page about choosing with the
// catalogue.
func TestChoosingTable(t *testing.T) {
	golden.CheckSection(t, filepath.Join(repositoryRoot, "docs", "choosing.md"),
		"<!-- written by go test ./cmd/builder -run ChoosingTable -update -->\n", "<!-- end -->\n", frameworkTable(t))
}

// A row of a table collects what is known of its cells.
type row struct {
	pythons, glibcs map[string]bool
	standIn         bool   // one was built on a stand-in for its image
	day             string // of the last build from today's inputs
	old             string // of the last build from others
	gpus            bool   // one ran on GPUs
}

// provenRows groups the cells of a recipe by name. It returns the names sorted.
func provenRows(t *testing.T, recipeName string, name func(lock.Draft) string) (order []string, rows map[string]*row) {
	t.Helper()
	cat := builtIn()
	done := must.Get(proven.Read(recipes.FS))(t)
	r := must.Get(recipe.Find(cat.Recipes, recipeName))(t)
	drafts := must.Get(assemble.Choose(cat, r, ci.OpenAxes(r, nil, true)))(t)
	asm := plan.Sources{Offline: true}.Assembler(cat, t.TempDir())
	rows = map[string]*row{}
	standIn := standInAxes(t)
	for _, d := range drafts {
		of := rows[name(d)]
		if of == nil {
			of = &row{pythons: map[string]bool{}, glibcs: map[string]bool{}}
			rows[name(d)] = of
		}
		of.pythons[d.Cell.Axes["python"]] = true
		of.glibcs[d.Settings.Expect.Glibc] = true
		of.standIn = of.standIn || standIn.Holds(d.Cell.Axes)
		proof, built := done[d.Cell.ID]
		if !built {
			continue
		}
		entries := must.Get(asm.Entries(t.Context(), r, nil, []lock.Draft{d}))(t)
		last := &of.old
		if entries[len(entries)-1].Key() == proof.Key {
			last = &of.day
		}
		*last = max(*last, proof.Day)
		of.gpus = of.gpus || proof.GPUs
	}
	return slices.Sorted(maps.Keys(rows)), rows
}

// standInAxes returns the axes of the cell that the end-to-end tests build on a stand-in for
// an image that cannot be had in every place.
func standInAxes(t *testing.T) (axes recipe.Condition) {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join(repositoryRoot, "test", "e2e", "testdata", "standin", "axes.json")))(t)
	must.Succeed(t, json.Unmarshal(data, &axes))
	return axes
}

// standing returns the last columns of a row: when a cell was last built and gated, from
// today's inputs or others, and whether one ran on GPUs.
func (r *row) standing() string {
	day, gpus := cmp.Or(r.day, "never"), "no"
	switch {
	case r.day == "" && r.old != "":
		day = r.old + ", from other inputs than today's"
	case r.day == "" && r.standIn:
		day = "on a stand-in"
	}
	if r.gpus {
		gpus = "yes"
	}
	return fmt.Sprintf("%s | %s |", day, gpus)
}

// frameworkTable returns the table of Horovod: a row for each minor release of a framework
// and each platform, the newest first.
func frameworkTable(t *testing.T) string {
	t.Helper()
	order, rows := provenRows(t, "horovod", func(d lock.Draft) string { return framework(d.Cell) + " | " + platformRelease(d.Cell) })
	slices.SortStableFunc(order, newestFirst)
	text := "| Horovod for | platform | CPython | oldest system | built and gated | on GPUs |\n| --- | --- | --- | --- | --- | --- |\n"
	for _, name := range order {
		r := rows[name]
		glibc := slices.MinFunc(slices.Collect(maps.Keys(r.glibcs)), elf.CompareVersions)
		enough, _ := linux.Split(glibc)
		text += fmt.Sprintf("| %s | %s | %s | %s\n", name, strings.Join(versions.Ascending(slices.Collect(maps.Keys(r.pythons))), ", "), enough[0], r.standing())
	}
	return text
}

// newestFirst orders rows such as "torch 2.7 | CUDA 12": torch before TensorFlow, and the
// newest release first.
func newestFirst(a, b string) int {
	x, y := strings.Fields(a), strings.Fields(b)
	return cmp.Or(cmp.Compare(y[0], x[0]), elf.CompareVersions(y[1], x[1]), cmp.Compare(x[3], y[3]), elf.CompareVersions(y[4], x[4]))
}

// otherTable returns the table of the other recipes: a row for each major release of a
// platform. The README names the command that lists the tests of NCCL and RCCL.
func otherTable(t *testing.T) string {
	t.Helper()
	text := "| recipe | platform | built and gated | on GPUs |\n| --- | --- | --- | --- |\n"
	for _, r := range builtIn().Recipes {
		if r.Name == "horovod" || strings.HasSuffix(r.Name, "-tests") {
			continue
		}
		order, rows := provenRows(t, r.Name, func(d lock.Draft) string { return platform(d.Cell) })
		for _, name := range order {
			text += fmt.Sprintf("| `%s` | %s | %s\n", r.Name, name, rows[name].standing())
		}
	}
	return text
}

// framework returns the minor release of a cell's framework: torch 2.7.
func framework(c matrix.Cell) string {
	name, release := "torch", c.Axes["torch"]
	if release == versions.None {
		name, release = "TensorFlow", c.Axes["tensorflow"]
	}
	numbers := strings.SplitN(release, ".", 3)
	return name + " " + strings.Join(numbers[:2], ".")
}

// platformRelease returns the release of a cell's platform: ROCm 5.7.
func platformRelease(c matrix.Cell) string {
	if c.Axes["rocm"] != versions.None {
		return "ROCm " + c.Axes["rocm"]
	}
	return "CUDA " + c.Axes["cuda"]
}

// platform returns the major release of a cell's platform.
func platform(c matrix.Cell) string {
	for axis, name := range map[string]string{"rocm": "ROCm", "cuda": "CUDA"} {
		if v := c.Axes[axis]; v != "" && v != "none" {
			major, _, _ := strings.Cut(v, ".")
			return name + " " + major
		}
	}
	return "any"
}
