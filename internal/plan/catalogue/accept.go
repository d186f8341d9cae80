package catalogue

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/base/shell"
	"builder/internal/plan/lock"
	"builder/internal/plan/patch"
	"builder/patches"
)

// Unaccepted returns an error for the cells of which a site replaces parts of builder
// that accept does not name. The gates ask samples of what an artifact does, so they
// cannot answer for code that builder does not bring. accept holds names as the error
// prints them, or "all".
func (l Locks) Unaccepted(entries []lock.Entry, accept []string) error {
	if l.Site == "" || slices.Contains(accept, "all") {
		return nil
	}
	var parts []string
	for _, e := range entries {
		replaced, err := l.replaced(e)
		if err != nil {
			return err
		}
		parts = append(parts, replaced...)
	}
	slices.Sort(parts)
	parts = slices.DeleteFunc(slices.Compact(parts), func(part string) bool { return slices.Contains(accept, part) })
	if len(parts) == 0 {
		return nil
	}
	return diag.Errorf(diag.Usage, "%s takes the place of builder's own recipes with: %s", l.Site, strings.Join(parts, ", ")).
		WithHint("no gate can ask for all that they may change: read them, and add `--accept %s` or set BUILDER_ACCEPT", shell.Word(strings.Join(append(parts, accept...), ",")))
}

// replaced lists the site's parts of a cell, unless all are new and make what no
// built-in recipe makes, by the name of the source and the packages of the wheel.
func (l Locks) replaced(e lock.Entry) (parts []string, err error) {
	names := []string{"recipe " + e.Recipe, "image " + e.Image.Pin.Name, "image " + e.Runtime.Pin.Name}
	for _, i := range []lock.Image{e.Image, e.Runtime} {
		if i.CPython != nil {
			names = append(names, "cpython "+i.CPython.Minor())
		}
	}
	for _, p := range e.Patches {
		if !ships(e.Recipe, p) {
			names = append(names, "patch "+e.Recipe+"/"+p.Name)
		}
	}
	own := l.bring["recipe "+e.Recipe] != "" && !l.made[e.Source.Project] && !slices.ContainsFunc(e.Expect.Packages, func(p string) bool { return l.made[p] })
	for _, name := range names {
		how, ofSite := l.bring[name]
		if ofSite {
			parts = append(parts, name)
		}
		own = own && how != replacesBuiltIn
	}
	if moved, err := l.movesPins(e.Recipe); moved || err != nil {
		return append(parts, "lock "+e.Recipe), err
	}
	if own {
		return nil, nil
	}
	return parts, nil
}

// ships reports whether builder itself brings a patch with this content. `config init`
// copies the patches of a recipe into a site.
func ships(recipe string, p patch.Patch) bool {
	built, err := patch.Load(patches.FS, "patches", recipe)
	want, err2 := json.Marshal(p)
	return err == nil && err2 == nil && slices.ContainsFunc(built, func(b patch.Patch) bool {
		has, err := json.Marshal(b)
		return err == nil && string(has) == string(want)
	})
}

// movesPins reports whether the site's lock gives a built-in pin of a recipe another
// content.
func (l Locks) movesPins(name string) (bool, error) {
	built, err := l.built(name)
	if err != nil || built.None() {
		return false, err
	}
	own, err := l.Own(name)
	if err != nil {
		return false, err
	}
	over, err1 := json.Marshal(built.With(own))
	under, err2 := json.Marshal(own.With(built))
	return string(over) != string(under), errors.Join(err1, err2)
}
