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
	pythons map[string]bool
	glibcs  map[string]bool
	proofs  []lock.Draft // of the built cells
}

// provenRows groups the cells of a recipe. It keeps the order of their names.
func provenRows(t *testing.T, recipeName string, name func(lock.Draft) string) (order []string, rows map[string]*row) {
	t.Helper()
	cat, done := builtIn(), provenCells(t)
	r, err := recipe.Find(cat.Recipes, recipeName)
	must.Succeed(t, err)
	drafts, err := assemble.Choose(cat, r, ci.OpenAxes(r, nil, true))
	must.Succeed(t, err)
	rows = map[string]*row{}
	for _, d := range drafts {
		key := name(d)
		if rows[key] == nil {
			rows[key] = &row{map[string]bool{}, map[string]bool{}, nil}
		}
		rows[key].pythons[d.Cell.Axes["python"]] = true
		rows[key].glibcs[d.Settings.Expect.Glibc] = true
		if _, ok := done[d.Cell.ID]; ok {
			rows[key].proofs = append(rows[key].proofs, d)
		}
	}
	return slices.Sorted(maps.Keys(rows)), rows
}

// standing returns the last columns of a row: when a cell was last built and gated, from
// today's inputs or others, and whether one ran on GPUs.
func (r *row) standing(t *testing.T, recipeName string) string {
	t.Helper()
	cat, done := builtIn(), provenCells(t)
	of, err := recipe.Find(cat.Recipes, recipeName)
	must.Succeed(t, err)
	asm := plan.Sources{Offline: true}.Assembler(cat, t.TempDir())
	day, old, gpus := "", "", "no"
	for _, d := range r.proofs {
		proof := done[d.Cell.ID]
		entries, err := asm.Entries(t.Context(), of, nil, []lock.Draft{d})
		must.Succeed(t, err)
		if entries[len(entries)-1].Key() == proof.Key {
			day = max(day, proof.Day)
		} else {
			old = max(old, proof.Day)
		}
		if proof.GPUs {
			gpus = "yes"
		}
	}
	if day == "" && old != "" {
		day = old + ", from other inputs than today's"
	}
	return fmt.Sprintf("%s | %s |", cmp.Or(day, "never"), gpus)
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
		text += fmt.Sprintf("| %s | %s | %s | %s\n", name, strings.Join(versions.Ascending(slices.Collect(maps.Keys(r.pythons))), ", "), enough[0], r.standing(t, "horovod"))
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
			text += fmt.Sprintf("| `%s` | %s | %s\n", r.Name, name, rows[name].standing(t, r.Name))
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

// provenCells returns the record of built cells.
func provenCells(t *testing.T) proven.Cells {
	t.Helper()
	done, err := proven.Read(recipes.FS)
	must.Succeed(t, err)
	return done
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
