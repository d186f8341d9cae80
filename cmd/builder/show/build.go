package show

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/app/plan"
	"builder/internal/plan/audit"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/ci"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/internal/view/report"
	"builder/internal/view/term"
)

// Run prints the cells and the files of passing cells, and as a note those of
// refused cells. It ends with the page below dir, and with the next command if all cells
// passed: an error has its own hint.
func Run(out term.Printer, done report.Run, dir string) {
	if len(done.Cells) == 0 {
		return // no value was unproven, and no page was written
	}
	out.Table(report.Summary(done))
	all := true
	for _, c := range done.Cells {
		all = all && report.StatusOf(c) == report.Pass
		for i, a := range c.Artifacts {
			switch report.StatusOf(c) {
			case report.Pass:
				out.Say("%s", a.Path)
				if i == 0 {
					out.Say("  sha256:%s, signed by %s", a.SHA256, cmp.Or(strings.Join(c.Signers, ", "), "no trusted key"))
				}
			case report.Fail, report.NotMeasured:
				out.Note("refused by its gates: %s", a.Path)
			}
		}
	}
	out.Say("page: %s", filepath.Join(dir, "report.html"))
	if next := report.Next(done); all && len(next) > 0 {
		out.Say("next: %s", next[0].Line)
	}
}

// Lock prints the changes of a lock.
func Lock(out term.Printer, r plan.LockResult) {
	if r.Checked {
		printLockCheck(out, r)
		return
	}
	if rows := lockRows(r.Changes); len(rows) > 0 {
		out.Table([]string{"kind", "name", "was", "is"}, rows)
	}
	if r.Wrote == "" {
		out.Say("nothing changed")
	} else {
		out.Say("wrote %s", r.Wrote)
	}
}

// printLockCheck prints the locked cells and the needs of the others.
func printLockCheck(out term.Printer, r plan.LockResult) {
	cells := fmt.Sprintf("%d cells", len(r.Cells))
	if len(r.Cells) == 1 {
		cells = r.Cells[0]
	}
	if len(r.Unstated) == 0 {
		out.Say("the lock of %s pins everything for %s", r.Recipe, cells)
		return
	}
	out.Say("the lock of %s pins everything for all of %s except the cells that need", r.Recipe, cells)
	for _, why := range r.Unstated {
		out.Say("  %s", why)
	}
}

// lockRows returns a row for each change. Many new pins of a kind, such as the Debian
// packages of a first lock, share one row; the lock and --json list them.
func lockRows(changes []lock.PinChange) [][]string {
	added := map[string]int{}
	for _, c := range changes {
		if c.Was == "" {
			added[c.Kind]++
		}
	}
	var rows [][]string
	for _, c := range changes {
		n := added[c.Kind]
		if c.Was != "" || n < manyPins {
			rows = append(rows, []string{c.Kind, c.Name, cmp.Or(c.Was, "-"), cmp.Or(c.Is, "-")})
			continue
		}
		row := []string{c.Kind, fmt.Sprintf("%d new", n), "-", "in the lock"}
		if !slices.ContainsFunc(rows, func(r []string) bool { return slices.Equal(r, row) }) {
			rows = append(rows, row)
		}
	}
	return rows
}

// manyPins is the number of new pins of one kind from which on a table only counts them.
const manyPins = 20

// Jobs prints the jobs of a matrix.
func Jobs(out term.Printer, jobs []ci.Job) {
	var rows [][]string
	for _, j := range jobs {
		rows = append(rows, []string{j.ID, j.Recipe, matrix.Pairs(j.Axes)})
	}
	out.Table([]string{"cell", "recipe", "axes"}, rows)
}

// Patches prints the patches of recipes as tables or as JSON.
func Patches(out term.Printer, cat catalogue.Catalogue, rs []*recipe.Recipe, asJSON bool) error {
	all := map[string][]patch.Patch{}
	for _, r := range rs {
		all[r.Name] = cat.Patches[r.Name]
	}
	if asJSON {
		return out.JSON(all)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, p := range all[name] {
			out.Say("%s/%s", name, p.Name)
			out.Say("  %-9s%s", "reason", p.Reason)
			out.Say("  %-9s%s", "when", matrix.Pairs(p.When))
			if p.Merged != "" {
				out.Say("  %-9sin %s", "merged", p.Merged)
			}
			out.Say("  %-9s%s", "upstream", p.Upstream)
			for _, e := range p.Edits {
				out.Say("  %-9s%s", e.Kind, cmp.Or(e.File, e.Link, e.Diff))
			}
			out.Say("")
		}
	}
	return nil
}

// Audit prints for each patch the number of its cells and its effect on the
// versions, in the order of the catalogue.
func Audit(out term.Printer, r *recipe.Recipe, report audit.Report) {
	if len(report.Rows) == 0 {
		out.Say("%s has no patches", r.Name)
		return
	}
	versions, _ := r.Axis("version")
	var rows [][]string
	for _, row := range report.Rows {
		name, cells := row.Patch, fmt.Sprintf("%d of %d", row.Cells, row.Of)
		for _, state := range patch.States() {
			in := slices.DeleteFunc(slices.Clone(versions.Values), func(v string) bool { return row.States[v] != state })
			if len(in) == 0 {
				continue
			}
			rows = append(rows, []string{name, cells, string(state), strings.Join(in, " ")})
			name, cells = "", ""
		}
	}
	out.Table([]string{r.Name, "cells", "state", "versions"}, rows)
}

// Proven prints the number of built and gated cells of a recipe, and the day of the last
// build. If stale is not nil, it prints the cells too, and what stale says of each.
func Proven(out term.Printer, cat catalogue.Catalogue, r *recipe.Recipe, stale map[string]string) error {
	built, last, err := cat.ProvenCells(r)
	if err != nil {
		return err
	}
	if len(built) == 0 {
		out.Say("\nproven: no build of a cell is recorded yet\n")
		return nil
	}
	out.Say("\nproven: %d cells were built and gated, the last on %s", len(built), last)
	for _, id := range built {
		if why := stale[id]; why != "" {
			id += ", stale: " + why
		}
		if stale != nil {
			out.Say("  %s", id)
		}
	}
	out.Say("")
	return nil
}
