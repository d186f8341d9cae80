package lock

import (
	"encoding/json"
	"errors"
	"slices"

	"builder/internal/base/diag"
	"builder/internal/files/wheel"
	"builder/internal/plan/image"
)

// Moved returns the pins of g that f does not have. If the packages of a Debian image
// are unchanged, its date stays unchanged too and does not count as a difference.
// Otherwise each new resolution would change every key.
func (f File) Moved(g File) File {
	moved := g
	moved.Images = slices.Clone(g.Images)
	for i, pin := range moved.Images {
		moved.Images[i] = f.dated(pin)
	}
	return moved.Without(f)
}

// dated gives a pin the date of its predecessor if that has the same packages, because
// the older date has all of them too.
func (f File) dated(pin ImagePin) ImagePin {
	for _, old := range f.Images {
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

// encoded returns the JSON of a pin or a need. Equal ones have the same.
func encoded(x any) string {
	data, _ := json.Marshal(x) // only strings, integers and lists of them
	return string(data)
}

// Unneeded returns the pins of f that satisfy no need of the drafts.
func (f File) Unneeded(drafts []Draft) File { return f.Without(f.answers(File{}.Missing(drafts))) }

// answers returns the pins of f that satisfy a need in m.
func (f File) answers(m Missing) File {
	found, pins := File{Schema: Schema, Recipe: f.Recipe}, NewPins(f, "")
	for _, s := range m.Sources {
		found.Sources = append(found.Sources, f.sourcePins(s)...)
	}
	for _, img := range m.Images {
		if pin, ok := pins.image(img); ok {
			found.Images = append(found.Images, pin)
		}
	}
	for _, need := range m.Python {
		if pin, ok := pins.python(need); ok {
			found.Python = append(found.Python, pin)
		}
	}
	return found
}

// sourcePins returns the pins for a source as stored in the lock.
func (f File) sourcePins(s SourceNeed) []SourcePin {
	return slices.DeleteFunc(slices.Clone(f.Sources), func(pin SourcePin) bool { return !pin.answers(s) })
}

// None reports whether the file pins nothing.
func (f File) None() bool { return len(f.Sources)+len(f.Images)+len(f.Python) == 0 }

// String lists the pins of the file in words.
func (f File) String() string {
	var m Missing
	for _, s := range f.Sources {
		m.Sources = append(m.Sources, SourceNeed{Project: s.Project, Version: s.Version, Python: s.Python})
	}
	for _, i := range f.Images {
		m.Images = append(m.Images, image.Image{Name: i.Name})
	}
	for _, p := range f.Python {
		m.Python = append(m.Python, p.need())
	}
	return m.String()
}

// Holding returns the needs of the drafts that match one of the names: the name of a
// source, of an image or a package in it, or of a Python package in the pins of f. A
// name that matches no need is an error.
func (f File) Holding(names []string, drafts []Draft) (Missing, error) {
	questions := f.questions(drafts)
	var held Missing
	for _, q := range questions {
		if slices.ContainsFunc(names, q.has) {
			q.ask(&held)
		}
	}
	var errs []error
	for _, name := range names {
		if !slices.ContainsFunc(questions, func(q question) bool { return q.has(name) }) {
			errs = append(errs, unknown(name, questions))
		}
	}
	return held, errors.Join(errs...)
}

// question is a need of drafts with all names of its pin.
type question struct {
	names []string
	ask   func(*Missing)
}

// has compares names as the Python index does. No two Debian packages or images differ
// only in the ignored characters.
func (q question) has(name string) bool {
	return slices.ContainsFunc(q.names, func(n string) bool { return wheel.NormalName(n) == wheel.NormalName(name) })
}

// questions lists the needs of the drafts, with the names in the pins of f.
func (f File) questions(drafts []Draft) []question {
	var all []question
	needs, pins := File{}.Missing(drafts), NewPins(f, "")
	for _, s := range needs.Sources {
		all = append(all, question{[]string{s.Project}, func(m *Missing) { m.Sources = append(m.Sources, s) }})
	}
	for _, img := range needs.Images {
		pin, _ := pins.image(img)
		pin.Name = img.Name
		all = append(all, question{pin.names(), func(m *Missing) { m.Images = append(m.Images, img) }})
	}
	for _, need := range needs.Python {
		pin, _ := pins.python(need)
		all = append(all, question{pin.names(), func(m *Missing) { m.Python = append(m.Python, need) }})
	}
	return all
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
func unknown(name string, questions []question) error {
	err := diag.Errorf(diag.Usage, "no chosen cell needs a pin of %q", name)
	var known []string
	for _, q := range questions {
		known = append(known, q.names...)
	}
	if near := diag.Nearest(name, known); near != "" {
		return err.WithHint("did you mean %q?", near)
	}
	return err.WithHint("name a source, an image, one of its packages or a Python package; choose other cells by their axes or --all; what a recipe pins by digest is in no lock")
}
