package main

import (
	"errors"
	"maps"
	"slices"

	"builder/internal/diag"
	"builder/internal/lock"
	"builder/internal/matrix"
	"builder/internal/shell"
)

// assemble makes the entries of drafts of a recipe, without what goes into them.
// What the lock lacks is named together with the command that pins it.
func assemble(cat catalogue, o options, recipe string, chosen matrix.Filter, drafts []lock.Draft, f lock.File) ([]lock.Entry, error) {
	entries, err := lock.Assemble(drafts, f, revision())
	fault, ok := errors.AsType[*diag.Error](err)
	if !ok || fault.Code != diag.Drift {
		return entries, err
	}
	hint := "run `" + cat.pinCommand(recipe, chosen) + "`"
	switch {
	case o.locked:
		hint += ", or leave out --locked"
	case o.offline:
		hint += ", or leave out --offline"
	}
	return nil, fault.WithHint("%s", hint)
}

// pinCommand is the command line that pins what the chosen cells need.
func (c catalogue) pinCommand(recipe string, chosen matrix.Filter) string {
	words := []string{"builder", "lock", recipe}
	if c.site != "" {
		words = append(words, "--recipes", c.site)
	}
	for _, axis := range slices.Sorted(maps.Keys(chosen)) {
		words = append(words, "--"+axis, chosen[axis])
	}
	return shell.Line(words...)
}

// unusedOverrides refuses a --set for something that no cell reads.
func unusedOverrides(overrides map[string][]string, entries []lock.Entry) error {
	var known []string
	for _, e := range entries {
		known = append(known, e.Source.Project)
		for _, image := range []lock.Image{e.Image, e.Runtime} {
			for _, p := range image.Pin.Packages {
				known = append(known, p.Name)
			}
			for _, w := range image.Wheels {
				known = append(known, w.Project)
			}
		}
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		if slices.Contains(known, name) {
			continue
		}
		fault := diag.Errorf(diag.Usage, "--set: no chosen cell reads a source.%s", name)
		if near := diag.Nearest(name, known); near != "" {
			fault = fault.WithHint("did you mean source.%s?", near)
		}
		faults = append(faults, fault)
	}
	return errors.Join(faults...)
}
