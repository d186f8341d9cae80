package lock

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"builder/internal/diag"
	"builder/internal/image"
	"builder/internal/matrix"
	"builder/internal/patch"
	"builder/internal/recipe"
	"builder/internal/subst"
)

// A Catalogue is everything that recipes may name.
type Catalogue struct {
	Images  []image.Image
	Patches map[string][]patch.Patch // by distribution
}

// A Draft is a cell with everything that follows from recipe, images and
// patches alone: what `builder plan` shows before a single name is resolved.
type Draft struct {
	Cell     matrix.Cell
	Vars     map[string]string // axes, facts of the image, and names derived from them
	Settings recipe.Settings   // with every {{name}} replaced
	Image    image.Image
	Runtime  image.Image
	Source   Sdist
	Epoch    int64 // SOURCE_DATE_EPOCH, seconds
	Patches  []patch.Choice
}

// An Sdist asks for a source distribution by name.
type Sdist struct {
	Project string
	Version string
}

// NewDraft works out what a cell is made of. All faults are reported together.
func NewDraft(c matrix.Cell, cat Catalogue) (Draft, error) {
	settings, err := c.Recipe.For(c.Axes)
	if err != nil {
		return Draft{}, err
	}
	build, err1 := image.Find(cat.Images, settings.Image)
	runtime, err2 := image.Find(cat.Images, settings.Runtime)
	if err := errors.Join(err1, err2); err != nil {
		return Draft{}, fmt.Errorf("recipe %s: %w", c.Recipe.Name, err)
	}
	d := Draft{Cell: c, Image: build, Runtime: runtime, Vars: vars(c.Axes, build)}
	if err := d.agree(); err != nil {
		return Draft{}, err
	}
	return d.expand(settings, cat.Patches[c.Recipe.Name])
}

// vars joins axes and image facts; an axis wins over the fact of its name,
// because agree has shown that they are the same.
func vars(axes map[string]string, img image.Image) map[string]string {
	all := img.Facts()
	maps.Copy(all, axes)
	all["cp"] = "cp" + strings.ReplaceAll(all["python"], ".", "")
	return all
}

// agree refuses a cell whose image states another value for one of its axes.
func (d Draft) agree() error {
	var faults []error
	for _, axis := range slices.Sorted(maps.Keys(d.Cell.Axes)) {
		fact, stated := d.Image.Provides[axis]
		if stated && fact.Is != d.Cell.Axes[axis] {
			faults = append(faults, diag.Errorf(diag.Usage, "cell %s wants %s %s, image %s provides %s",
				d.Cell.ID, axis, d.Cell.Axes[axis], d.Image.Name, fact.Is))
		}
	}
	return errors.Join(faults...)
}

func (d Draft) expand(s recipe.Settings, patches []patch.Patch) (Draft, error) {
	var faults []error
	list := func(texts []string) []string {
		out, err := subst.All(texts, d.Vars)
		faults = append(faults, err)
		return out
	}
	table := func(texts map[string]string) map[string]string {
		out, err := subst.Map(texts, d.Vars)
		faults = append(faults, err)
		return out
	}
	s.Env, s.Expect.Built = table(s.Env), table(s.Expect.Built)
	s.Requires.Build, s.Requires.Run = list(s.Requires.Build), list(s.Requires.Run)
	s.Expect.DeviceCode, s.Expect.Needed = list(s.Expect.DeviceCode), list(s.Expect.Needed)
	d.Settings = s

	source := list([]string{d.Cell.Recipe.Source.Project, d.Cell.Recipe.Source.Version})
	choices, err := patch.Select(patches, d.Vars)
	faults = append(faults, err)
	if err := errors.Join(faults...); err != nil {
		return Draft{}, fmt.Errorf("recipe %s: %w", d.Cell.Recipe.Name, err)
	}
	d.Source, d.Patches = Sdist{source[0], source[1]}, choices
	d.Epoch, err = released(d.Cell.Recipe, source[1])
	return d, err
}

// released returns the date that stands for the clock in a build.
func released(r *recipe.Recipe, version string) (int64, error) {
	date, ok := r.Source.Released[version]
	if !ok {
		return 0, diag.Errorf(diag.Usage, "recipe %s: source.released has no date for %s", r.Name, version)
	}
	t, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return 0, diag.Errorf(diag.Usage, "recipe %s: source.released: %q is not a date such as 2023-06-12", r.Name, date)
	}
	return t.Unix(), nil
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
