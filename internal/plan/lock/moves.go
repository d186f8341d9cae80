package lock

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/files/wheel"
	"builder/internal/input/pypi"
	"builder/internal/plan/image"
)

// Moved returns the pins of g that f does not have. If the packages of a Debian image
// are unchanged, its date stays unchanged too and does not count as a difference.
// Otherwise each new resolution would change every key.
func (f File) Moved(g File) File {
	moved := g
	moved.Images = slices.Clone(g.Images)
	for i, pin := range moved.Images {
		moved.Images[i] = dated(pin, f.Images)
	}
	return moved.Without(f)
}

// dated gives a pin the date of its predecessor if that has the same packages, because
// the older date has all of them too.
func dated(pin ImagePin, before []ImagePin) ImagePin {
	for _, old := range before {
		if old.Name == pin.Name && slices.Equal(old.Packages, pin.Packages) {
			pin.Date = old.Date
		}
	}
	return pin
}

// Without returns the pins of f that g does not have.
func (f File) Without(g File) File {
	return File{
		Schema: Schema, Recipe: f.Recipe,
		Sources: without(f.Sources, g.Sources), Images: without(f.Images, g.Images), Python: without(f.Python, g.Python),
	}
}

// without returns the items of list that gone does not have.
func without[T any](list, gone []T) []T {
	known := map[string]bool{}
	for _, x := range gone {
		known[encoded(x)] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return known[encoded(x)] })
}

// distinct removes the items that occurred before.
func distinct[T any](list []T) []T {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(x T) bool {
		key := encoded(x)
		before := seen[key]
		seen[key] = true
		return before
	})
}

// Unneeded returns the pins of f that satisfy no need of the drafts.
func (f File) Unneeded(drafts []Draft) File {
	needs, left := File{}.Missing(drafts), File{Schema: Schema, Recipe: f.Recipe}
	left.Sources = slices.DeleteFunc(slices.Clone(f.Sources), func(p SourcePin) bool { return slices.ContainsFunc(needs.Sources, p.answers) })
	left.Images = slices.DeleteFunc(slices.Clone(f.Images), func(p ImagePin) bool { return slices.ContainsFunc(needs.Images, p.answers) })
	left.Python = slices.DeleteFunc(slices.Clone(f.Python), func(p PythonPin) bool {
		return slices.ContainsFunc(needs.Python, func(need PythonPin) bool { return need.question() == p.question() })
	})
	return left
}

// None reports whether the file pins nothing.
func (f File) None() bool { return len(f.Sources)+len(f.Images)+len(f.Python) == 0 }

// String lists the pins of the file in words.
func (f File) String() string {
	m := Missing{Python: f.Python}
	for _, s := range f.Sources {
		m.Sources = append(m.Sources, SourceNeed{Project: s.Project, Version: s.Version, Python: s.Python})
	}
	for _, i := range f.Images {
		m.Images = append(m.Images, image.Image{Name: i.Name})
	}
	return m.String()
}

// Holding returns the needs of the drafts that match one of the names: the name of a
// source, of an image or a package in it, or of a Python package in the pins of f. A
// name that matches no need is an error.
func (f File) Holding(names []string, drafts []Draft) (Missing, error) {
	needs := File{}.Missing(drafts)
	var held Missing
	known := map[string]string{} // the name of every need, in normal form
	for _, s := range needs.Sources {
		if isNamed(names, known, s.Project) {
			held.Sources = append(held.Sources, s)
		}
	}
	for _, img := range needs.Images {
		pin, _ := imagePin(f.Images, img)
		pin.Name = img.Name
		if isNamed(names, known, pin.names()...) {
			held.Images = append(held.Images, img)
		}
	}
	for _, need := range needs.Python {
		pin, _ := pythonPin(f.Python, need)
		if isNamed(names, known, pin.names()...) {
			held.Python = append(held.Python, need)
		}
	}
	var errs []error
	for _, name := range names {
		if known[wheel.NormalName(name)] == "" {
			errs = append(errs, unknown(name, slices.Sorted(maps.Values(known))))
		}
	}
	return held, errors.Join(errs...)
}

// isNamed reports whether names has one of a need's names, and adds those to known. It
// compares as the Python index does. No two Debian packages or images differ only in the
// ignored characters.
func isNamed(names []string, known map[string]string, of ...string) bool {
	for _, name := range of {
		known[wheel.NormalName(name)] = name
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return slices.ContainsFunc(of, func(n string) bool { return wheel.NormalName(n) == wheel.NormalName(name) })
	})
}

func (p ImagePin) names() []string {
	names := []string{p.Name}
	for _, d := range p.Packages {
		names = append(names, d.Name)
	}
	return names
}

func (p PythonPin) names() []string {
	var names []string
	for _, file := range p.Files {
		names = append(names, file.Project)
	}
	return names
}

// unknown returns the error for a name that no need has.
func unknown(name string, known []string) error {
	err := diag.Errorf(diag.Usage, "no chosen cell needs a pin of %q", name)
	if near := diag.Nearest(name, known); near != "" {
		return err.WithHint("did you mean %q?", near)
	}
	return err.WithHint("name a source, an image, one of its packages or a Python package; choose other cells by their axes or --all; what a recipe pins by digest is in no lock")
}

// A PinChange is one pin that differs between two locks of a recipe.
type PinChange struct {
	Kind string `json:"kind"` // source, image, package or wheel
	Name string `json:"name"` // with its image or its Python version
	Was  string `json:"was"`  // empty if the pin is new
	Is   string `json:"is"`   // empty if the pin is gone
}

// Compare lists the differences from the pins of f to those of g, each once: several
// sets of Python packages may share one.
func Compare(f, g File) []PinChange {
	was, is := f.named(), g.named()
	changes := []PinChange{}
	for at, now := range is {
		if then := was[at]; then != now {
			changes = append(changes, PinChange{at.kind, at.name, then, now})
		}
	}
	for at, then := range was {
		if _, still := is[at]; !still {
			changes = append(changes, PinChange{at.kind, at.name, then, ""})
		}
	}
	slices.SortFunc(changes, func(a, b PinChange) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Was, b.Was), cmp.Compare(a.Is, b.Is))
	})
	return slices.Compact(changes)
}

// pinName identifies a pin. set distinguishes sets of Python packages with the same
// wheel.
type pinName struct{ kind, name, set string }

// named returns the printed value of every pin.
func (f File) named() map[pinName]string {
	all := map[pinName]string{}
	for _, s := range f.Sources {
		all[pinName{"source", s.Project + " " + s.Version, ""}] = pinned(s.File)
	}
	for _, i := range f.Images {
		all[pinName{"image", i.Name, ""}] = cmp.Or(short(i.Digest), i.Date)
		for _, p := range i.Packages {
			all[pinName{"package", p.Name + " (" + i.Name + ")", ""}] = p.Version + " " + short(p.SHA256)
		}
	}
	for _, p := range f.Python {
		set := p.String()
		for _, file := range p.Files {
			all[pinName{"wheel", file.Project + " (Python " + p.Python + ")", set}] = pinned(file)
		}
	}
	return all
}

func pinned(f pypi.File) string { return f.Version + " " + short(f.SHA256) }

// short returns the first 12 digits of a digest, for display.
func short(digest string) string {
	digest = strings.TrimPrefix(digest, "sha256:")
	return digest[:min(12, len(digest))]
}
