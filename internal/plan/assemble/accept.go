package assemble

import (
	"context"
	"regexp"
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

// makesOurs reports whether an entry of a recipe that builder does not have makes what
// one of recipes makes, as far as its promises tell.
func makesOurs(recipes []*recipe.Recipe, e lock.Entry) bool {
	x := e.Expect
	plain := func(name string) bool { return !strings.Contains(name, "/") }
	atStart := func(name string) bool { return startsWithPython.MatchString(name) }
	names := slices.Concat([]string{e.Source.Project, e.ID, x.Tree}, x.Packages, x.Import, x.Extensions)
	return x.Library != "" || x.Launcher != "" || len(x.Frameworks)+len(x.Collectives) > 0 ||
		x.Tree == "" && !slices.ContainsFunc(x.Packages, plain) ||
		slices.ContainsFunc(x.Packages, atStart) || Claimed(recipes, names) != ""
}

// startsWithPython matches what Python runs at its start, what tools take for an
// installed project, and files beside the packages.
var startsWithPython = regexp.MustCompile(`\.pth$|^(site|user)customize\b|\.(egg|dist)-info\b|\.egg-link$|^data/`)

// Claimed returns the first of names (of a project, a file, a module or a pattern of
// files) that holds the name of one of recipes or of a package of theirs, or "".
func Claimed(recipes []*recipe.Recipe, names []string) string {
	ours := map[string]bool{}
	for _, r := range recipes {
		for _, name := range append(slices.Clone(r.Expect.Packages), r.Name) {
			ours[wheel.NormalName(name)] = true
		}
	}
	i := slices.IndexFunc(names, func(name string) bool {
		return slices.ContainsFunc(parts(name), func(part string) bool {
			for own := range ours {
				if part == own || len(own) > 3 && strings.HasPrefix(part, own) {
					return true
				}
			}
			return false
		})
	})
	if i < 0 {
		return ""
	}
	return names[i]
}

// parts returns the words of a name in small letters, each without the lib of a library:
// nvidia and nccl of nvidia/libnccl.so.2.
func parts(name string) (all []string) {
	for _, word := range strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune("/.-_+*[]?{}", r) }) {
		all = append(all, word, strings.TrimPrefix(word, "lib"))
	}
	return append(all, wheel.NormalName(name))
}
