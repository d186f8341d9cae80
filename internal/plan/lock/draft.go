package lock

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"builder/internal/base/diag"
	"builder/internal/base/subst"
	"builder/internal/plan/image"
	"builder/internal/plan/matrix"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/internal/plan/version"
)

// A Catalogue holds the images, the CPythons and the patches that recipes may name.
type Catalogue struct {
	Images   []image.Image
	CPythons []image.CPython
	Patches  map[string][]patch.Patch // by distribution
}

// A Draft is a cell with all properties that follow from recipe, images and patches
// alone. `builder plan` shows it before any name is resolved.
type Draft struct {
	Cell     matrix.Cell
	Vars     map[string]string // axes, facts of the image, and names derived from them
	Settings recipe.Settings   // with every {{name}} replaced
	Image    image.Image
	Runtime  image.Image
	Source   SourceNeed
	Tests    SourceNeed // without a kind if there are no tests
	Epoch    int64      // SOURCE_DATE_EPOCH in seconds; 0 if only the pin of the source has it
	Patches  []patch.Choice
}

// A SourceNeed is a request for a source tree, by name or by its location upstream or
// in a Debian archive.
type SourceNeed struct {
	recipe.Origin
	Project string
	Version string
	Python  string // of a wheel: its CPython version, "3.11"
	Root    bool   // the folder Under is the root of the source
}

// NewDraft returns the draft of a cell. It reports all errors together. Change no list or
// map of a draft: the recipe and the catalogue share it.
func NewDraft(c matrix.Cell, cat Catalogue) (Draft, error) {
	d, s, err := cat.begin(c)
	if err != nil {
		return Draft{}, err
	}
	var errs []error
	for _, b := range s.Expect.Behaviour {
		errs = append(errs, b.Fault())
	}
	env, err1 := subst.Deep(s.Env, d.Vars)
	inputs, err2 := subst.Deep(s.Inputs, d.Vars)
	requires, err3 := subst.Deep(s.Requires, d.Vars)
	expect, err4 := subst.Deep(s.Expect, d.Vars)
	errs = append(errs, err1, err2, err3, err4)
	if errors.Join(errs...) == nil { // a name without a value leaves an empty text
		errs = append(errs, c.Recipe.GatesFault(s.Expect.Gates, expect.Gates))
	}
	if env == nil {
		env = map[string]string{} // an entry has no null
	}
	s.Env, s.Inputs, s.Requires, s.Expect = env, inputs, requires, expect
	d.Settings = s

	source, err := sourceOf(c.Recipe.Source, s.From, d.Vars)
	errs = append(errs, err, s.StockFault())
	tests, err := testsOf(c.Recipe.Source, s, d.Vars)
	errs = append(errs, err)
	var unfit []error
	for _, p := range cat.Patches[c.Recipe.Name] {
		choice, err := patch.Choose(p, d.Vars)
		if err != nil {
			unfit = append(unfit, fmt.Errorf("recipe %s: %w", c.Recipe.Name, err))
		}
		d.Patches = append(d.Patches, choice)
	}
	if err := errors.Join(c.Recipe.Fault(errors.Join(errs...)), errors.Join(unfit...)); err != nil {
		return Draft{}, err
	}
	d.Source, d.Tests = source, tests
	if source.Kind == recipe.Git {
		return d, nil // the pin has the date of the commit
	}
	date, dated := c.Recipe.Source.Released[source.Version]
	released, err := time.Parse(time.DateOnly, date)
	switch {
	case !dated:
		err = diag.Errorf(diag.Usage, "source.released has no date for %s", source.Version).
			WithHint("add %q: \"YYYY-MM-DD\", the date of the release", source.Version)
	case err != nil:
		err = diag.Errorf(diag.Usage, "source.released: %q is not a date such as 2023-06-12", date)
	}
	if err != nil {
		return Draft{}, c.Recipe.FaultAt("source.released", err)
	}
	d.Epoch = released.Unix()
	return d, nil
}

// Facts returns the names that patches of a cell may use: its axes and the facts of its
// image.
func Facts(c matrix.Cell, cat Catalogue) (map[string]string, error) {
	d, _, err := cat.begin(c)
	return d.Vars, err
}

// begin finds the images of a cell and merges the facts of the build image with the cell's
// names. A name overrides the fact of the same name: agree checks that the axes do not.
func (cat Catalogue) begin(c matrix.Cell) (Draft, recipe.Settings, error) {
	settings, err := c.Recipe.For(c.Axes)
	if err != nil {
		return Draft{}, settings, err
	}
	var images [2]image.Image
	var errs [2]error
	for i, template := range []string{settings.Image, settings.Runtime} { // may contain axes
		var name string
		if name, errs[i] = subst.Expand(template, c.Names); errs[i] == nil {
			images[i], errs[i] = image.Find(cat.Images, name)
		}
	}
	build, runtime := images[0], images[1]
	err = errors.Join(errs[:]...)
	if err == nil && settings.CPython != "" {
		build, runtime, err = cat.withCPython(settings.CPython, c.Names, build, runtime)
	}
	if err != nil {
		return Draft{}, settings, c.Recipe.Fault(err)
	}
	d := Draft{Cell: c, Image: build, Runtime: runtime, Vars: build.Facts()}
	maps.Copy(d.Vars, c.Names)
	if _, known := d.Vars["cp"]; !known {
		d.Vars["cp"] = "cp" + strings.ReplaceAll(d.Vars["python"], ".", "")
	}
	return d, settings, d.agree()
}

// withCPython lays a CPython into both images of a cell. The template of its minor
// release may contain axes.
func (cat Catalogue) withCPython(template string, names map[string]string, build, runtime image.Image) (image.Image, image.Image, error) {
	minor, err := subst.Expand(template, names)
	if err != nil {
		return build, runtime, err
	}
	i := slices.IndexFunc(cat.CPythons, func(c image.CPython) bool { return c.Minor() == minor })
	if i < 0 {
		var known []string
		for _, c := range cat.CPythons {
			known = append(known, c.Minor())
		}
		return build, runtime, diag.Errorf(diag.Usage, "cpython: there is no CPython %s in images/cpython.yaml, only %s", minor, strings.Join(known, ", ")).
			WithHint("add its archive with size and sha256 to images/cpython.yaml")
	}
	c := cat.CPythons[i]
	var errs []error
	for _, img := range []image.Image{build, runtime} {
		if glibc := img.Provides["glibc"].Is; glibc != "" && version.Order(glibc, c.Floor) < 0 {
			errs = append(errs, diag.Errorf(diag.Usage, "CPython %s needs glibc %s, but image %s has %s", c.Version, c.Floor, img.Name, glibc))
		}
	}
	return build.With(c), runtime.With(c), errors.Join(errs...)
}

// agree rejects a cell whose image states another value for one of its axes.
func (d Draft) agree() error {
	var errs []error
	for _, axis := range slices.Sorted(maps.Keys(d.Cell.Axes)) {
		fact, stated := d.Image.Provides[axis]
		if stated && fact.Is != d.Cell.Axes[axis] {
			errs = append(errs, diag.Errorf(diag.Usage, "cell %s needs %s %s, but image %s provides %s",
				d.Cell.ID, axis, d.Cell.Axes[axis], d.Image.Name, fact.Is))
		}
	}
	return errors.Join(errs...)
}

// Chosen returns the patches that apply, in order.
func (d Draft) Chosen() []patch.Patch {
	var chosen []patch.Patch
	for _, c := range d.Patches {
		if c.Applies {
			chosen = append(chosen, c.Patch)
		}
	}
	return chosen
}

// SourceOf returns the pin of a cell's source, if it is one of the pins. It does not
// evaluate the cell's patches.
func SourceOf(c matrix.Cell, names map[string]string, pins []SourcePin) (SourcePin, bool) {
	settings, err := c.Recipe.For(c.Axes)
	if err != nil {
		return SourcePin{}, false
	}
	s, err := sourceOf(c.Recipe.Source, settings.From, names)
	if err != nil {
		return SourcePin{}, false
	}
	return sourcePin(pins, s)
}

// testsOf returns the source of a cell's tests, or a need without a kind if it has
// none. The tests of horovod are the source horovod-tests of the same version.
func testsOf(identity recipe.Source, s recipe.Settings, names map[string]string) (SourceNeed, error) {
	if len(s.Expect.Tests.Files) == 0 {
		return SourceNeed{}, nil
	}
	if err := s.Expect.Tests.Fault(s.TestsFrom); err != nil {
		return SourceNeed{}, err
	}
	identity.Project += "-tests"
	need, err := sourceOf(identity, s.TestsFrom, names)
	need.Root = false // expect names the files of tests from the root of the repository
	return need, err
}

// sourceOf replaces names in the source description of a recipe.
func sourceOf(identity recipe.Source, from recipe.Origin, names map[string]string) (SourceNeed, error) {
	texts, err := subst.Deep([]string{identity.Project, identity.Version, from.Repository, from.Tag, from.Path}, names)
	from.Repository, from.Tag, from.Path = texts[2], texts[3], texts[4]
	s := SourceNeed{Origin: from, Project: texts[0], Version: texts[1], Root: from.Under != ""}
	if from.Kind == recipe.Wheel {
		if s.Python = names["python"]; s.Python == "" {
			err = errors.Join(err, diag.Errorf(diag.Usage, "a source of kind wheel needs a Python, and no axis and no fact of the image states one"))
		}
	}
	return s, errors.Join(err, from.Fault())
}
