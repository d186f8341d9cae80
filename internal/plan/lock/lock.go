// Package lock turns a cell into an [Entry]: everything that its build reads, by
// digest. The file that a lock is kept in is made to be checked in and reviewed:
// names, versions, pool paths, sizes and digests, one per line, sorted, without
// a time, a host or a path of the machine that wrote it, and rewritten only
// where a pin has changed.
//
// Names are resolved in one place, [Resolver]; everything else here is a
// function from value to value. No file is brought here that a build reads, which
// internal/build/fetch does, and none is built, which pipelines does.
package lock

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/input/deb"
	"builder/internal/input/pypi"
	"builder/internal/plan/image"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
)

// Schema is the number of the format of lock files and entries.
const Schema = 1

// A File is the lock of one recipe: what names were resolved to.
type File struct {
	Schema  int         `json:"schema"`
	Recipe  string      `json:"recipe"`
	Sources []SourcePin `json:"sources"`
	Images  []ImagePin  `json:"images"`
	Python  []PythonPin `json:"python"`
}

// A SourcePin is the archive of a source tree. Of a source distribution it is
// the file of the index; of a commit it is the archive that [git.Make]
// writes, whose bytes follow from the commit.
type SourcePin struct {
	pypi.File
	Repository string `json:"repository,omitempty"` // of the recipe: a lock holds no address
	Tag        string `json:"tag,omitempty"`
	Commit     string `json:"commit,omitempty"`
	Under      string `json:"under,omitempty"`  // the folder of the tree that it holds, "" where that is all
	Epoch      int64  `json:"epoch,omitempty"`  // when the commit was made, seconds
	Path       string `json:"path,omitempty"`   // in the pool of a Debian archive
	Python     string `json:"python,omitempty"` // of a wheel: the CPython that it was chosen for
}

// IsWheel reports whether the source is a released wheel.
func (p SourcePin) IsWheel() bool { return p.Python != "" }

// Kind says how the source is had.
func (p SourcePin) Kind() recipe.SourceKind {
	switch {
	case p.SHA256 == "":
		return recipe.Cells
	case p.Path != "":
		return recipe.Archive
	case p.Commit != "":
		return recipe.Git
	case p.IsWheel():
		return recipe.Wheel
	}
	return recipe.Sdist
}

// asks is what a pin answers, in words: a lock has one answer to each.
func (p SourcePin) asks() string { return asked(p.Project, p.Version, p.Python) }

func asked(project, version, python string) string {
	if python == "" {
		return project + " " + version
	}
	return project + " " + version + " for Python " + python
}

// answers reports whether a pin is what the source asks for.
func (p SourcePin) answers(s SourceNeed) bool {
	return p.Project == s.Project && p.Version == s.Version &&
		p.Tag == s.Tag && p.Under == s.Under && p.Path == s.Path && p.Python == s.Python &&
		(s.SHA256 == "" || p.SHA256 == s.SHA256) && (s.Commit == "" || p.Commit == s.Commit)
}

// An ImagePin is a base by digest, with what was asked for, so that a changed
// question is seen.
type ImagePin struct {
	Name     string        `json:"name"`
	Registry string        `json:"registry,omitempty"`
	Digest   string        `json:"digest,omitempty"`
	Date     string        `json:"date,omitempty"` // of the Debian index, as snapshot archives write it: 20261121T000000Z
	Debian   *image.Debian `json:"debian,omitempty"`
	Packages []deb.Package `json:"packages,omitempty"`
}

// A PythonPin is the set of files that some requirements were resolved to.
type PythonPin struct {
	Python       string      `json:"python"`
	Requirements []string    `json:"requirements"`
	Without      []string    `json:"without,omitempty"`
	Files        []pypi.File `json:"files"`
}

// An Entry is a cell with everything by digest. What is not in it cannot
// influence the build, and what is in it decides its [Entry.Key].
type Entry struct {
	Schema   int               `json:"schema"`
	Pipeline string            `json:"pipeline"` // digest of the steps' own scripts
	Recipe   string            `json:"recipe"`
	ID       string            `json:"id"`
	Axes     map[string]string `json:"axes"`
	Facts    map[string]string `json:"facts"` // what patches may name
	Source   SourcePin         `json:"source"`
	Patches  []patch.Patch     `json:"patches"`
	Image    Image             `json:"image"`
	Runtime  Image             `json:"runtime"`
	Env      map[string]string `json:"env"`
	Script   string            `json:"script"`
	Epoch    int64             `json:"epoch"`
	Inputs   []Input           `json:"inputs,omitempty"`
	Profile  []recipe.Variable `json:"profile,omitempty"`
	Vendored []recipe.Vendored `json:"vendored,omitempty"`
	// Tests is the tree of upstream's tests, TestWheels what they need beside the
	// run-time packages.
	Tests      SourcePin     `json:"tests,omitzero"`
	TestWheels []pypi.File   `json:"test-wheels,omitempty"`
	Memory     int64         `json:"memory,omitempty"` // bytes that the build takes at its peak; 0 is not known
	Expect     recipe.Expect `json:"expect"`
	// Advisories are known of the source; Patches says which of them are mended.
	Advisories []recipe.Advisory `json:"advisories,omitempty"`
}

// An Input is a cell of another recipe whose wheel is installed before the build
// and beside the artifact, or is a part of a stack. Its key stands for all that is
// in it.
type Input struct {
	Recipe string            `json:"recipe"`
	ID     string            `json:"id"`
	Key    string            `json:"key"`
	Axes   map[string]string `json:"axes,omitempty"`
}

// An Image is a locked base with the Python packages installed in it.
type Image struct {
	Pin      ImagePin              `json:"pin"`
	Setup    string                `json:"setup,omitempty"`
	Env      map[string]string     `json:"env"`
	Python   string                `json:"python"`
	Site     bool                  `json:"site,omitempty"` // the interpreter's packages belong to the image
	Wheels   []pypi.File           `json:"wheels"`
	Provides map[string]image.Fact `json:"provides"`
}

// RequirementsEnd is what the name of a cell's requirements file ends with, behind its id.
const RequirementsEnd = ".requirements.txt"

// Key returns the sha256 of the entry's canonical JSON.
func (e Entry) Key() string { return sumOf(e.Canonical()) }

// Missing lists what drafts need and the file does not pin.
type Missing struct {
	Sources []SourceNeed
	Images  []image.Image
	Python  []PythonNeed
}

// A PythonNeed asks for a set of requirements on one Python, without the projects
// that something else provides.
type PythonNeed struct {
	Python       string
	Requirements []string
	Without      []string
}

// String says the need in words.
func (n PythonNeed) String() string {
	if len(n.Requirements) == 0 {
		return fmt.Sprintf("Python %s without packages", n.Python)
	}
	text := fmt.Sprintf("Python %s with %s", n.Python, strings.Join(n.Requirements, " "))
	if len(n.Without) > 0 {
		text += " without " + strings.Join(n.Without, " ")
	}
	return text
}

// None reports whether nothing is missing.
func (m Missing) None() bool { return len(m.Sources)+len(m.Images)+len(m.Python) == 0 }

// Unstated says of each need that one place alone can answer what has to be asked:
// the registry of an image that is named by a tag, the repository of a tree. What
// those answer today stands in no file and in no index.
func (m Missing) Unstated() (whys []string) {
	for _, s := range m.Sources {
		if s.Kind == recipe.Git {
			whys = append(whys, fmt.Sprintf("source %s: nothing states the digest of its archive, its repository has to be asked", asked(s.Project, s.Version, s.Python)))
		}
	}
	for _, img := range m.Images {
		if img.Unstated() {
			whys = append(whys, fmt.Sprintf("image %s: nothing states the digest of %s, its registry has to be asked", img.Name, img.Registry))
		}
	}
	return whys
}

// Else returns what is missing beside [Missing.Unstated].
func (m Missing) Else() Missing {
	m.Sources = slices.DeleteFunc(slices.Clone(m.Sources), func(s SourceNeed) bool { return s.Kind == recipe.Git })
	m.Images = slices.DeleteFunc(slices.Clone(m.Images), image.Image.Unstated)
	return m
}

// And returns what is missing here or there, each once.
func (m Missing) And(n Missing) Missing {
	return Missing{
		Sources: slices.Concat(m.Sources, without(n.Sources, m.Sources)),
		Images:  slices.Concat(m.Images, without(n.Images, m.Images)),
		Python:  slices.Concat(m.Python, without(n.Python, m.Python)),
	}
}

// String names what is missing, for a person.
func (m Missing) String() string {
	var names []string
	for _, s := range m.Sources {
		names = append(names, "source "+asked(s.Project, s.Version, s.Python))
	}
	for _, i := range m.Images {
		names = append(names, "image "+i.Name)
	}
	for _, p := range m.Python {
		names = append(names, p.String())
	}
	return strings.Join(names, "; ")
}

// Missing returns what the drafts need and f does not pin, each once.
func (f File) Missing(drafts []Draft) Missing {
	var m Missing
	for _, d := range drafts {
		for _, source := range d.sources() {
			if _, ok := f.source(source); !ok && !slices.Contains(m.Sources, source) {
				m.Sources = append(m.Sources, source)
			}
		}
		for _, img := range []image.Image{d.Image, d.Runtime} {
			named := func(i image.Image) bool { return i.Name == img.Name }
			if _, ok := f.image(img); !ok && !slices.ContainsFunc(m.Images, named) {
				m.Images = append(m.Images, img)
			}
		}
		for _, need := range d.pythonNeeds() {
			if _, ok := f.python(need); !ok && !slices.ContainsFunc(m.Python, need.equal) {
				m.Python = append(m.Python, need)
			}
		}
	}
	return m
}

// sources lists the source of a cell, and that of its tests where it has some.
func (d Draft) sources() []SourceNeed {
	if d.Tests.Kind == "" {
		return []SourceNeed{d.Source}
	}
	return []SourceNeed{d.Source, d.Tests}
}

// pythonNeeds lists the packages of the build, those of the gates, and those of the
// tests where they need some.
func (d Draft) pythonNeeds() []PythonNeed {
	requires := d.Settings.Requires
	needs := []PythonNeed{
		{Python: d.Vars["python"], Requirements: sorted(requires.Build)},
		{Python: d.Vars["python"], Requirements: sorted(requires.Run), Without: slices.Sorted(slices.Values(requires.Without))},
	}
	if len(requires.Tests) > 0 && d.Tests.Kind != "" {
		needs = append(needs, PythonNeed{Python: d.Vars["python"], Requirements: sorted(requires.Tests)})
	}
	return needs
}

func (n PythonNeed) equal(m PythonNeed) bool {
	return n.Python == m.Python && slices.Equal(n.Requirements, m.Requirements) && slices.Equal(n.Without, m.Without)
}

// need is what a pin answers.
func (p PythonPin) need() PythonNeed { return PythonNeed{p.Python, p.Requirements, p.Without} }

// question is the need as pins are sorted by it.
func (p PythonPin) question() string {
	words := append([]string{p.Python}, p.Requirements...)
	if len(p.Without) > 0 {
		words = append(append(words, "without"), p.Without...)
	}
	return strings.Join(words, " ")
}

func sorted(s []string) []string {
	return append([]string{}, slices.Compact(slices.Sorted(slices.Values(s)))...)
}

// source finds the pin of a source. What the recipe pins itself needs none.
func (f File) source(s SourceNeed) (SourcePin, bool) {
	switch s.Kind {
	case recipe.Cells:
		return SourcePin{}, true
	case recipe.Archive:
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

// image finds the pin that answers the question as it is asked today.
func (f File) image(img image.Image) (ImagePin, bool) {
	if img.Digest != "" {
		return ImagePin{Name: img.Name, Registry: img.Registry, Digest: img.Digest}, true
	}
	for _, pin := range f.Images {
		if pin.Name == img.Name && pin.Registry == img.Registry && same(pin.Debian, img.Debian) {
			return pin, true
		}
	}
	return ImagePin{}, false
}

func (f File) python(need PythonNeed) (PythonPin, bool) {
	for _, pin := range f.Python {
		if need.equal(pin.need()) {
			return pin, true
		}
	}
	return PythonPin{}, false
}

// Assemble makes the entries of drafts whose names f pins; pipeline is the
// digest of the steps' own scripts. A name that is not pinned is an error.
func Assemble(drafts []Draft, f File, pipeline string) ([]Entry, error) {
	if m := f.Missing(drafts); !m.None() {
		return nil, diag.Errorf(diag.Drift, "the lock of %s lacks %s", f.Recipe, m).
			WithHint("run `builder lock %s`, or leave out --locked", f.Recipe)
	}
	entries := make([]Entry, len(drafts))
	for i, d := range drafts {
		entries[i] = assemble(d, f, pipeline)
	}
	return entries, nil
}

func assemble(d Draft, f File, pipeline string) Entry {
	source, _ := f.source(d.Source)
	needs := d.pythonNeeds()
	e := Entry{
		Schema: Schema, Pipeline: pipeline,
		Recipe: d.Cell.Recipe.Name, ID: d.Cell.ID, Axes: d.Cell.Axes, Facts: d.Vars,
		Source: source, Patches: d.Chosen(),
		Image:   f.locked(d.Image, needs[0]),
		Runtime: f.locked(d.Runtime, needs[1]),
		Env:     d.Settings.Env, Script: d.Cell.Recipe.Build, Epoch: cmp.Or(d.Epoch, source.Epoch),
		Profile: d.Settings.Profile, Vendored: d.Settings.Vendored, Memory: d.Memory, Expect: d.Settings.Expect,
		Advisories: d.Settings.Advisories,
	}
	if d.Tests.Kind != "" {
		e.Tests, _ = f.source(d.Tests)
	}
	if len(needs) > 2 {
		pin, _ := f.python(needs[2])
		e.TestWheels = pin.Files
	}
	return e
}

func (f File) locked(img image.Image, need PythonNeed) Image {
	pin, _ := f.image(img)
	python, _ := f.python(need)
	return Image{Pin: pin, Setup: img.Setup, Env: img.Env, Python: img.Python, Site: img.Site, Wheels: python.Files, Provides: img.Provides}
}

// With returns f with the pins of g added; a pin of g replaces that of f for the
// same question. Neither is changed.
func (f File) With(g File) File {
	merged := File{Schema: Schema, Recipe: f.Recipe}
	merged.Sources = merge(f.Sources, g.Sources, SourcePin.asks)
	merged.Images = merge(f.Images, g.Images, func(p ImagePin) string { return p.Name })
	merged.Python = merge(f.Python, g.Python, PythonPin.question)
	return merged
}

// merge returns the union of a and b sorted by key; b wins.
func merge[T any](a, b []T, key func(T) string) []T {
	byKey := map[string]T{}
	for _, item := range slices.Concat(a, b) {
		byKey[key(item)] = item
	}
	merged := make([]T, 0, len(byKey))
	for _, item := range byKey {
		merged = append(merged, item)
	}
	slices.SortFunc(merged, func(x, y T) int { return strings.Compare(key(x), key(y)) })
	return merged
}

var (
	leaf  = regexp.MustCompile(`\{[^{}\[\]]*\}`)
	broke = regexp.MustCompile(`\n *`) // in JSON a line ends between values only
)

// Encode writes the lock as JSON with one pin per line, and the sum of them all
// in the last.
func (f File) Encode() []byte {
	data, err := json.MarshalIndent(signed{f.With(File{}), f.sum()}, "", " ")
	if err != nil {
		panic(fmt.Sprintf("lock: a lock is not JSON: %v", err))
	}
	data = leaf.ReplaceAllFunc(data, func(block []byte) []byte {
		return broke.ReplaceAll(block, []byte(" "))
	})
	return append(data, '\n')
}

// Write replaces the lock at path if its content differs; a reader never sees
// half a lock. It reports whether it wrote. What [Decode] would refuse is not
// written.
func Write(path string, f File) (bool, error) {
	data := f.Encode()
	if err := writable(path, f, data); err != nil {
		return false, err
	}
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, data) {
		return false, nil
	}
	if err := atomicfile.Write(path, data); err != nil {
		return false, err
	}
	return true, nil
}
