package main

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/internal/app/plan"
	"builder/internal/plan/assemble"
	"builder/internal/plan/ci"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/proven"
	"builder/internal/plan/recipe"
	"builder/recipes"
	"builder/test/kit/golden"
	"builder/test/kit/must"
)

// TestReadmeTable compares the table of the README with the catalogue: the cells of
// each recipe by platform, how many of them are locked, and the day of the last build.
// -update rewrites the table.
func TestReadmeTable(t *testing.T) {
	golden.CheckSection(t, filepath.Join(repositoryRoot, "README.md"),
		"<!-- written by go test ./cmd/builder -run ReadmeTable -update -->\n", "<!-- end -->\n", supported(t))
}

// provenCells returns the record of built cells.
func provenCells(t *testing.T) proven.Cells {
	t.Helper()
	done, err := proven.Read(recipes.FS)
	must.Succeed(t, err)
	return done
}

// supported returns the table with a row for each recipe and major release of its
// platform.
func supported(t *testing.T) string {
	t.Helper()
	cat, done := builtIn(), provenCells(t)
	asm := plan.Sources{Offline: true}.Assembler(cat, t.TempDir())
	text := "| recipe | platform | cells | locked | last built and gated |\n| --- | --- | --- | --- | --- |\n"
	for _, r := range cat.Recipes {
		if strings.HasSuffix(r.Name, "-tests") {
			continue // the README names the command that lists them
		}
		drafts, err := assemble.Choose(cat, r, ci.OpenAxes(r, nil, true))
		must.Succeed(t, err)
		file, err := cat.Locks("").Read(r.Name)
		must.Succeed(t, err)
		type row struct {
			cells, locked, built, changed int // changed: built from other inputs than today's
			day                           string
		}
		var order []string
		rows := map[string]*row{}
		for _, d := range drafts {
			name := platform(d.Cell)
			if rows[name] == nil {
				order, rows[name] = append(order, name), &row{}
			}
			n := rows[name]
			n.cells++
			if file.Missing([]lock.Draft{d}).None() {
				n.locked++
			}
			proof, ok := done[d.Cell.ID]
			if !ok {
				continue
			}
			entries, err := asm.Entries(t.Context(), r, nil, []lock.Draft{d})
			must.Succeed(t, err)
			n.built++
			n.day = max(n.day, proof.Day)
			if entries[len(entries)-1].Key() != proof.Key {
				n.changed++
			}
		}
		for _, name := range order {
			n, last := rows[name], "never"
			if n.built > 0 {
				last = fmt.Sprintf("%s (%d of %d)", n.day, n.built, n.cells)
			}
			if n.changed > 0 {
				last += fmt.Sprintf(", %d from other inputs than today's", n.changed)
			}
			text += fmt.Sprintf("| `%s` | %s | %d | %d | %s |\n", r.Name, name, n.cells, n.locked, last)
		}
	}
	return text
}

// TestChoosingTable compares the table of Horovod for ROCm on the page about choosing with
// the catalogue.
func TestChoosingTable(t *testing.T) {
	golden.CheckSection(t, filepath.Join(repositoryRoot, "docs", "choosing.md"),
		"<!-- written by go test ./cmd/builder -run ChoosingTable -update -->\n", "<!-- end -->\n", horovodROCm(t))
}

// horovodROCm returns the table with a row for each ROCm, framework and Python.
func horovodROCm(t *testing.T) string {
	t.Helper()
	cat, done := builtIn(), provenCells(t)
	r, err := recipe.Find(cat.Recipes, "horovod")
	must.Succeed(t, err)
	drafts, err := assemble.Choose(cat, r, ci.OpenAxes(r, nil, true))
	must.Succeed(t, err)
	built := map[string]map[string]string{} // by row: the GPUs of built cells, and the last day
	for _, d := range drafts {
		axes := d.Cell.Axes
		if axes["rocm"] == "none" {
			continue
		}
		framework, base := "TensorFlow "+axes["tensorflow"], "Debian"
		if axes["torch"] != "none" {
			framework = "torch " + axes["torch"]
		}
		if d.Image.Registry != "" {
			base = "AMD"
		}
		row := fmt.Sprintf("| %s | %s | %s | %s | %s |", axes["rocm"], framework, axes["python"], base, d.Settings.Expect.Glibc)
		if built[row] == nil {
			built[row] = map[string]string{}
		}
		if proof, ok := done[d.Cell.ID]; ok {
			built[row][axes["arch"]] = max(built[row][axes["arch"]], proof.Day)
		}
	}
	text := "| ROCm | framework | Python | image of | glibc of the node | built and gated |\n| --- | --- | --- | --- | --- | --- |\n"
	for _, row := range slices.Sorted(maps.Keys(built)) {
		var gpus []string
		for _, gpu := range slices.Sorted(maps.Keys(built[row])) {
			gpus = append(gpus, gpu+" "+built[row][gpu])
		}
		text += row + " " + cmp.Or(strings.Join(gpus, ", "), "never") + " |\n"
	}
	return text
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
