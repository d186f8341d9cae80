package show

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"builder/internal/plan/audit"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/matrix"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/internal/view/term"
)

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
