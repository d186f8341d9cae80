package lock

import (
	"cmp"
	"path"
	"slices"

	"builder/internal/base/diag"
	"builder/internal/input/pypi"
	"builder/internal/plan/image"
	"builder/internal/plan/recipe"
)

// Missing returns the needs of the drafts for which f has no pin, each once.
func (f File) Missing(drafts []Draft) Missing {
	var m Missing
	for _, d := range drafts {
		for _, source := range d.sources() {
			if _, ok := sourcePin(f.Sources, source); !ok {
				m.Sources = append(m.Sources, source)
			}
		}
		for _, img := range []image.Image{d.Image, d.Runtime} {
			if _, ok := imagePin(f.Images, img); !ok {
				m.Images = append(m.Images, img)
			}
		}
		for _, need := range d.pythonNeeds() {
			if _, ok := pythonPin(f.Python, need); !ok {
				m.Python = append(m.Python, need)
			}
		}
	}
	return m.And(Missing{})
}

// sourcePin returns the pin of a source. A source pinned by the recipe itself needs none
// in the lock.
func sourcePin(pins []SourcePin, s SourceNeed) (SourcePin, bool) {
	if s.Kind == recipe.Archive {
		file := pypi.File{Project: s.Project, Version: s.Version, Filename: path.Base(s.Path), Size: s.Size, SHA256: s.SHA256}
		return SourcePin{File: file, Path: s.Path}, true
	}
	for _, pin := range pins {
		if pin.answers(s) {
			pin.Repository = s.Repository
			return pin, true
		}
	}
	return SourcePin{}, false
}

// imagePin returns the pin made for the current request of an image.
func imagePin(pins []ImagePin, img image.Image) (ImagePin, bool) {
	if img.Digest != "" {
		return ImagePin{Name: img.Name, Registry: img.Registry, Digest: img.Digest}, true
	}
	for _, pin := range pins {
		if pin.answers(img) {
			return pin, true
		}
	}
	return ImagePin{}, false
}

func pythonPin(pins []PythonPin, need PythonPin) (PythonPin, bool) {
	i := slices.IndexFunc(pins, func(pin PythonPin) bool {
		return pin.Python == need.Python && slices.Equal(pin.Requirements, need.Requirements)
	})
	if i < 0 {
		return PythonPin{}, false
	}
	return pins[i], true
}

// Assemble returns the entries of drafts. pipeline is the digest of the scripts of the
// steps. A name without a pin in f is an error.
func Assemble(drafts []Draft, f File, pipeline string) (entries []Entry, err error) {
	if m := f.Missing(drafts); !m.None() {
		return nil, diag.Errorf(diag.Drift, "the lock of %s lacks %s", f.Recipe, m)
	}
	locked := func(img image.Image, need PythonPin) Image {
		pin, _ := imagePin(f.Images, img)
		python, _ := pythonPin(f.Python, need)
		return Image{Pin: pin, Setup: img.Setup, Env: img.Env, Python: img.Python, CPython: img.CPython, Site: img.Site, Wheels: python.Files, Provides: img.Provides}
	}
	for _, d := range drafts {
		source, _ := sourcePin(f.Sources, d.Source)
		needs := d.pythonNeeds()
		e := Entry{
			Schema: EntrySchema, Pipeline: pipeline,
			Recipe: d.Cell.Recipe.Name, ID: d.Cell.ID, Axes: d.Cell.Axes, Facts: d.Vars,
			Source: source, Homepage: d.Cell.Recipe.Homepage, License: d.Settings.License, Patches: d.Chosen(),
			Image:   locked(d.Image, needs[0]),
			Runtime: locked(d.Runtime, needs[1]),
			Env:     d.Settings.Env, Script: d.Cell.Recipe.Build, Epoch: cmp.Or(d.Epoch, source.Epoch),
			Profile: d.Settings.Profile, Vendored: d.Settings.Vendored, Expect: d.Settings.Expect,
			Advisories: d.Settings.Advisories,
		}
		if d.Tests.Kind != "" {
			e.Tests, _ = sourcePin(f.Sources, d.Tests)
		}
		if len(needs) > 2 {
			pin, _ := pythonPin(f.Python, needs[2])
			e.TestWheels = pin.Files
		}
		entries = append(entries, e)
	}
	return entries, nil
}
