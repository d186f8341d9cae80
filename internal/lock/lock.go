// Package lock turns a cell into an [Entry]: everything that its build reads, by
// digest. The file that a lock is kept in is made to be checked in and reviewed:
// names, versions, pool paths, sizes and digests, one per line, sorted, without
// a time, a host or a path of the machine that wrote it, and rewritten only
// where a pin has changed.
//
// Names are resolved in one place, [Resolver]; everything else here is a
// function from value to value.
package lock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"builder/internal/deb"
	"builder/internal/diag"
	"builder/internal/image"
	"builder/internal/patch"
	"builder/internal/pypi"
	"builder/internal/recipe"
)

// Schema is the number of the format of lock files and entries.
const Schema = 1

// A File is the lock of one recipe: what names were resolved to.
type File struct {
	Schema  int         `json:"schema"`
	Recipe  string      `json:"recipe"`
	Sources []pypi.File `json:"sources"`
	Images  []ImagePin  `json:"images"`
	Python  []PythonPin `json:"python"`
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
	Source   pypi.File         `json:"source"`
	Patches  []patch.Patch     `json:"patches"`
	Image    Image             `json:"image"`
	Runtime  Image             `json:"runtime"`
	Env      map[string]string `json:"env"`
	Script   string            `json:"script"`
	Epoch    int64             `json:"epoch"`
	Expect   recipe.Expect     `json:"expect"`
}

// An Image is a locked base with the Python packages installed in it.
type Image struct {
	Pin      ImagePin              `json:"pin"`
	Setup    string                `json:"setup,omitempty"`
	Env      map[string]string     `json:"env"`
	Python   string                `json:"python"`
	Wheels   []pypi.File           `json:"wheels"`
	Provides map[string]image.Fact `json:"provides"`
}

// Key returns the sha256 of the entry's canonical JSON: sorted keys, no floats,
// no times, no host paths.
func (e Entry) Key() string {
	data, err := json.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("lock: an entry is not JSON: %v", err)) // strings, integers and maps of strings only
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Missing lists what drafts need and the file does not pin.
type Missing struct {
	Sources []Sdist
	Images  []image.Image
	Python  []PythonNeed
}

// A PythonNeed asks for a set of requirements on one Python.
type PythonNeed struct {
	Python       string
	Requirements []string
}

// None reports whether nothing is missing.
func (m Missing) None() bool { return len(m.Sources)+len(m.Images)+len(m.Python) == 0 }

// String names what is missing, for a person.
func (m Missing) String() string {
	var names []string
	for _, s := range m.Sources {
		names = append(names, fmt.Sprintf("source %s %s", s.Project, s.Version))
	}
	for _, i := range m.Images {
		names = append(names, "image "+i.Name)
	}
	for _, p := range m.Python {
		names = append(names, fmt.Sprintf("Python %s with %s", p.Python, strings.Join(p.Requirements, " ")))
	}
	return strings.Join(names, "; ")
}

// Missing returns what the drafts need and f does not pin, each once.
func (f File) Missing(drafts []Draft) Missing {
	var m Missing
	for _, d := range drafts {
		if _, ok := f.source(d.Source); !ok && !slices.Contains(m.Sources, d.Source) {
			m.Sources = append(m.Sources, d.Source)
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

func (d Draft) pythonNeeds() []PythonNeed {
	return []PythonNeed{
		{d.Vars["python"], sorted(d.Settings.Requires.Build)},
		{d.Vars["python"], sorted(d.Settings.Requires.Run)},
	}
}

func (n PythonNeed) equal(m PythonNeed) bool {
	return n.Python == m.Python && slices.Equal(n.Requirements, m.Requirements)
}

func sorted(s []string) []string { return slices.Compact(slices.Sorted(slices.Values(s))) }

func (f File) source(s Sdist) (pypi.File, bool) {
	for _, pin := range f.Sources {
		if pin.Project == s.Project && pin.Version == s.Version {
			return pin, true
		}
	}
	return pypi.File{}, false
}

// image finds the pin that answers the question as it is asked today.
func (f File) image(img image.Image) (ImagePin, bool) {
	if img.Digest != "" {
		return ImagePin{Name: img.Name, Registry: img.Registry, Digest: img.Digest}, true
	}
	for _, pin := range f.Images {
		if pin.Name == img.Name && pin.Registry == img.Registry && sameDebian(pin.Debian, img.Debian) {
			return pin, true
		}
	}
	return ImagePin{}, false
}

func sameDebian(a, b *image.Debian) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

func (f File) python(need PythonNeed) ([]pypi.File, bool) {
	for _, pin := range f.Python {
		if need.equal(PythonNeed{pin.Python, pin.Requirements}) {
			return pin.Files, true
		}
	}
	return nil, false
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
	return Entry{
		Schema: Schema, Pipeline: pipeline,
		Recipe: d.Cell.Recipe.Name, ID: d.Cell.ID, Axes: d.Cell.Axes, Facts: d.Vars,
		Source: source, Patches: d.Chosen(),
		Image:   f.locked(d.Image, needs[0]),
		Runtime: f.locked(d.Runtime, needs[1]),
		Env:     d.Settings.Env, Script: d.Cell.Recipe.Build, Epoch: d.Epoch, Expect: d.Settings.Expect,
	}
}

func (f File) locked(img image.Image, need PythonNeed) Image {
	pin, _ := f.image(img)
	wheels, _ := f.python(need)
	return Image{Pin: pin, Setup: img.Setup, Env: img.Env, Python: img.Python, Wheels: wheels, Provides: img.Provides}
}

// With returns f with the pins of g added; a pin of g replaces that of f for the
// same question. Neither is changed.
func (f File) With(g File) File {
	merged := File{Schema: Schema, Recipe: f.Recipe}
	merged.Sources = merge(f.Sources, g.Sources, func(p pypi.File) string { return p.Project + " " + p.Version })
	merged.Images = merge(f.Images, g.Images, func(p ImagePin) string { return p.Name })
	merged.Python = merge(f.Python, g.Python, func(p PythonPin) string { return p.Python + " " + strings.Join(p.Requirements, " ") })
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

// Decode reads a lock; name is what messages call it. It refuses unknown fields,
// another schema, and pins that are not what they should be.
func Decode(name string, data []byte) (File, error) {
	var f File
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return File{}, &diag.Error{
			Pos: diag.Pos{File: name, Line: lineOf(data, err, dec)}, Code: diag.Drift,
			Err: fmt.Errorf("reading the lock: %w", err), Hint: "restore the file, or write it anew with `builder lock`",
		}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return File{}, diag.Errorf(diag.Drift, "%s: more than one JSON value", name)
	}
	if f.Schema != Schema {
		return File{}, diag.Errorf(diag.Drift, "%s: schema %d, this builder reads %d", name, f.Schema, Schema)
	}
	return f, f.check(name)
}

// lineOf returns the line that the decoder had reached.
func lineOf(data []byte, err error, dec *json.Decoder) int {
	at := dec.InputOffset()
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at = syntax.Offset
	}
	return 1 + bytes.Count(data[:min(int(at), len(data))], []byte("\n"))
}

var (
	hexDigest  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	plainFile  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+!~-]*$`)
	poolPath   = regexp.MustCompile(`^pool(/[A-Za-z0-9][A-Za-z0-9._+~%-]*)+\.deb$`)
	imageDigst = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// check refuses pins that could lead a fetch astray: a digest that is none, a
// path that leaves its pool.
func (f File) check(name string) error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, diag.Errorf(diag.Drift, name+": "+format, args...).
			WithHint("the lock was edited by hand: restore it, or write it anew with `builder lock`"))
	}
	files := slices.Clone(f.Sources)
	for _, p := range f.Python {
		files = append(files, p.Files...)
	}
	for _, file := range files {
		if !hexDigest.MatchString(file.SHA256) || !plainFile.MatchString(file.Filename) || file.Size <= 0 {
			fault("%s %s: file name, size or sha256 is not one", file.Project, file.Version)
		}
	}
	for _, img := range f.Images {
		if img.Registry != "" && !imageDigst.MatchString(img.Digest) {
			fault("image %s: %q is not a digest", img.Name, img.Digest)
		}
		for _, p := range img.Packages {
			if !hexDigest.MatchString(p.SHA256) || !poolPath.MatchString(p.Path) || p.Size <= 0 {
				fault("package %s: path, size or sha256 is not one", p.Name)
			}
		}
	}
	return errors.Join(faults...)
}

var leaf = regexp.MustCompile(`\{[^{}\[\]]*\}`)

// Encode writes the lock as JSON with one pin per line.
func (f File) Encode() []byte {
	data, err := json.MarshalIndent(f.With(File{}), "", " ")
	if err != nil {
		panic(fmt.Sprintf("lock: a lock is not JSON: %v", err))
	}
	data = leaf.ReplaceAllFunc(data, func(block []byte) []byte {
		return []byte(strings.Join(strings.Fields(string(block)), " "))
	})
	return append(data, '\n')
}

// Write replaces the lock at path if its content differs; a reader never sees
// half a lock. It reports whether it wrote.
func Write(path string, f File) (bool, error) {
	data := f.Encode()
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, data) {
		return false, nil
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".lock-*")
	if err != nil {
		return false, err
	}
	defer os.Remove(tmp.Name())
	if _, err := tmp.Write(data); err != nil {
		tmp.Close()
		return false, err
	}
	if err := errors.Join(tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err != nil {
		return false, err
	}
	return true, os.Rename(tmp.Name(), path)
}
