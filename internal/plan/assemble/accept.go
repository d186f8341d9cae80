package assemble

import (
	"context"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/files/wheel"
	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
)

// Unaccepted returns an error for entries that builder's own recipes, images, patches
// and locks, which built assembles, do not make, unless accept names their recipes or is
// "all". Gates ask samples of what an artifact does, so they cannot answer for changes
// of its code. An entry of another recipe counts only if it makes what a recipe of
// builder makes.
func Unaccepted(ctx context.Context, built *Assembler, entries []lock.Entry, accept []string) error {
	if slices.Contains(accept, "all") {
		return nil
	}
	var faults []string
	names := slices.Clone(accept)
	for _, e := range entries {
		changes := changesOf(ctx, built, e)
		if len(changes) == 0 || slices.Contains(accept, e.Recipe) {
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
	return diag.Errorf(diag.Usage, "the site changes what builder's own recipes make: %s", strings.Join(faults, "; ")).
		WithHint("no gate can ask for all that a change may do: read it, and add --accept %s or set BUILDER_ACCEPT", strings.Join(names, ","))
}

// changesOf names what an entry has other than the entry that built makes of its axes.
func changesOf(ctx context.Context, built *Assembler, e lock.Entry) []string {
	if !slices.ContainsFunc(built.Locks.Recipes, func(r *recipe.Recipe) bool { return r.Name == e.Recipe }) {
		if makesOurs(built.Locks.Recipes, e) {
			return []string{"recipe " + e.Recipe}
		}
		return nil
	}
	ours, err := built.input(ctx, recipe.Input{Recipe: e.Recipe, Axes: e.Axes})
	if err != nil { // no such cell, or its lock lacks a pin
		return []string{"a cell, or a pin of its lock, that builder does not have"}
	}
	if ours.key == e.Key() {
		return nil
	}
	return lock.Differences(ours.entries[len(ours.entries)-1], e)
}

// makesOurs reports whether an entry of a recipe that builder does not have makes the
// project, a package or a library of one that it has, as far as its promises tell.
func makesOurs(recipes []*recipe.Recipe, e lock.Entry) bool {
	ours := map[string]bool{}
	for _, r := range recipes {
		for _, name := range append(r.Expect.Packages, r.Name) {
			ours[wheel.NormalName(name)] = true
		}
	}
	promised := slices.Concat([]string{e.Source.Project}, e.Expect.Packages, e.Expect.Import, e.Expect.Extensions)
	return e.Expect.Library != "" || len(e.Expect.Packages) == 0 && e.Expect.Tree == "" ||
		slices.ContainsFunc(promised, func(name string) bool {
			first, _, _ := strings.Cut(name, "/")
			first, _, _ = strings.Cut(first, ".")
			return ours[wheel.NormalName(first)] || strings.HasPrefix(name, "data/") || strings.HasSuffix(name, ".pth")
		})
}
