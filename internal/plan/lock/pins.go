package lock

import (
	"cmp"
	"path"
	"slices"

	"builder/internal/input/pypi"
	"builder/internal/plan/image"
	"builder/internal/plan/recipe"
)

// Pins are the pins of a lock by need, for the drafts of one catalogue.
type Pins struct {
	file     File
	pipeline string // digest of the scripts of the steps
	packages map[string]PythonPin
}

// NewPins returns the pins of f.
func NewPins(f File, pipeline string) *Pins {
	p := &Pins{f, pipeline, make(map[string]PythonPin, len(f.Python))}
	for _, pin := range slices.Backward(f.Python) {
		p.packages[pin.question()] = pin
	}
	return p
}

// Missing returns the needs of a draft without a pin, each once.
func (p *Pins) Missing(d Draft) Missing {
	var m Missing
	for _, source := range d.sources() {
		if _, ok := p.file.source(source); !ok {
			m.Sources = append(m.Sources, source)
		}
	}
	for _, img := range []image.Image{d.Image, d.Runtime} {
		if _, ok := p.image(img); !ok {
			m.Images = append(m.Images, img)
		}
	}
	for _, need := range d.pythonNeeds() {
		if _, ok := p.python(need); !ok {
			m.Python = append(m.Python, need)
		}
	}
	return m.And(Missing{})
}

// source returns the pin of a source. A source pinned by the recipe itself needs none
// in the lock.
func (f File) source(s SourceNeed) (SourcePin, bool) {
	if s.Kind == recipe.Archive {
		file := pypi.File{Project: s.Project, Version: s.Version, Filename: path.Base(s.Path), Size: s.Size, SHA256: s.SHA256}
		return SourcePin{File: file, Path: s.Path}, true
	}
	for _, pin := range f.Sources {
		if pin.answers(s) {
			pin.Repository = s.Repository
			return pin, true
		}
	}
	return SourcePin{}, false
}

// image returns the pin made for the current request of an image.
func (p *Pins) image(img image.Image) (ImagePin, bool) {
	if img.Digest != "" {
		return ImagePin{Name: img.Name, Registry: img.Registry, Digest: img.Digest}, true
	}
	for _, pin := range p.file.Images {
		if pin.answers(img) {
			return pin, true
		}
	}
	return ImagePin{}, false
}

func (p *Pins) python(need PythonPin) (PythonPin, bool) {
	pin, ok := p.packages[need.question()]
	return pin, ok
}

// Entry returns the entry of a draft that misses nothing.
func (p *Pins) Entry(d Draft) Entry {
	source, _ := p.file.source(d.Source)
	needs := d.pythonNeeds()
	e := Entry{
		Schema: EntrySchema, Pipeline: p.pipeline,
		Recipe: d.Cell.Recipe.Name, ID: d.Cell.ID, Axes: d.Cell.Axes, Facts: d.Vars,
		Source: source, Homepage: d.Cell.Recipe.Homepage, License: d.Settings.License, Patches: d.Chosen(),
		Image:   p.locked(d.Image, needs[0]),
		Runtime: p.locked(d.Runtime, needs[1]),
		Env:     d.Settings.Env, Script: d.Cell.Recipe.Build, Epoch: cmp.Or(d.Epoch, source.Epoch),
		Profile: d.Settings.Profile, Vendored: d.Settings.Vendored, Expect: d.Settings.Expect,
		Advisories: d.Settings.Advisories,
	}
	if d.Tests.Kind != "" {
		e.Tests, _ = p.file.source(d.Tests)
	}
	if len(needs) > 2 {
		pin, _ := p.python(needs[2])
		e.TestWheels = pin.Files
	}
	return e
}

func (p *Pins) locked(img image.Image, need PythonPin) Image {
	pin, _ := p.image(img)
	python, _ := p.python(need)
	return Image{Pin: pin, Setup: img.Setup, Env: img.Env, Python: img.Python, CPython: img.CPython, Site: img.Site, Wheels: python.Files, Provides: img.Provides}
}
