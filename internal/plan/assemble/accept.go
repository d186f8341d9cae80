package assemble

import (
	"context"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
)

// Unaccepted returns an error for entries that builder's own recipes, images, patches
// and locks, which built assembles, do not make, unless accept names their recipes or is
// "all". Gates ask samples of what an artifact does, so they cannot answer for code that
// builder does not bring.
func Unaccepted(ctx context.Context, built *Assembler, entries []lock.Entry, accept []string) error {
	if slices.Contains(accept, "all") {
		return nil
	}
	var faults []string
	names := slices.Clone(accept)
	for _, e := range entries {
		if slices.Contains(accept, e.Recipe) {
			continue
		}
		changes := changesOf(ctx, built, e)
		if len(changes) == 0 {
			continue
		}
		faults = append(faults, e.ID+" ("+strings.Join(changes, ", ")+")")
		if !slices.Contains(names, e.Recipe) {
			names = append(names, e.Recipe)
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return diag.Errorf(diag.Usage, "the site brings code that no gate can answer for: %s", strings.Join(faults, "; ")).
		WithHint("read it, and add --accept %s or set BUILDER_ACCEPT", strings.Join(names, ","))
}

// changesOf names what an entry has other than the entry that built makes of its axes.
func changesOf(ctx context.Context, built *Assembler, e lock.Entry) []string {
	if _, err := recipe.Find(built.Locks.Recipes, e.Recipe); err != nil {
		return []string{"recipe " + e.Recipe}
	}
	ours, err := built.input(ctx, recipe.Input{Recipe: e.Recipe, Axes: e.Axes})
	if err != nil { // no such cell, or its lock lacks a pin
		return []string{"a cell, or a pin of its lock, that builder does not have"}
	}
	if ours.key == e.Key() {
		return nil
	}
	if d := lock.Differences(ours.entries[len(ours.entries)-1], e); len(d) > 0 {
		return d
	}
	return []string{"an order"} // of patches, for instance
}
