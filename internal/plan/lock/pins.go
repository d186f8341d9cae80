package lock

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"reflect"
	"slices"
	"strings"

	"builder/internal/input/pypi"
	"builder/internal/plan/image"
	"builder/internal/plan/recipe"
)

// Pins are the pins of a lock by need, for the drafts of one catalogue. Cells share
// images and packages, which are most of an entry: each is found and encoded once.
type Pins struct {
	file     File
	pipeline string // digest of the scripts of the steps
	packages map[string]PythonPin
	images   map[string]ImagePin // found so far, by name
	encoded  map[string][]byte   // JSON of parts of entries, by a name of the part
}

// NewPins returns the pins of f.
func NewPins(f File, pipeline string) *Pins {
	p := &Pins{f, pipeline, make(map[string]PythonPin, len(f.Python)), map[string]ImagePin{}, map[string][]byte{}}
	for _, pin := range slices.Backward(f.Python) {
		p.packages[pin.need().key()] = pin
	}
	return p
}

// key identifies a need.
func (n PythonNeed) key() string {
	return n.Python + "\x01" + strings.Join(n.Requirements, "\x00") + "\x01" + strings.Join(n.Without, "\x00")
}

// Missing returns the needs of a draft without a pin.
func (p *Pins) Missing(d Draft) Missing {
	var m Missing
	for _, source := range d.sources() {
		if _, ok := p.file.source(source); !ok && !slices.Contains(m.Sources, source) {
			m.Sources = append(m.Sources, source)
		}
	}
	for _, img := range []image.Image{d.Image, d.Runtime} {
		named := func(i image.Image) bool { return i.Name == img.Name }
		if _, ok := p.image(img); !ok && !slices.ContainsFunc(m.Images, named) {
			m.Images = append(m.Images, img)
		}
	}
	for _, need := range d.pythonNeeds() {
		if _, ok := p.python(need); !ok && !slices.ContainsFunc(m.Python, need.equal) {
			m.Python = append(m.Python, need)
		}
	}
	return m
}

// source returns the pin of a source. A source pinned by the recipe itself needs none
// in the lock.
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

// image returns the pin made for the current request of an image.
func (p *Pins) image(img image.Image) (ImagePin, bool) {
	if img.Digest != "" {
		return ImagePin{Name: img.Name, Registry: img.Registry, Digest: img.Digest}, true
	}
	if pin, ok := p.images[img.Name]; ok {
		return pin, true
	}
	for _, pin := range p.file.Images {
		if pin.Name == img.Name && pin.Registry == img.Registry && same(pin.Debian, img.Debian) {
			p.images[img.Name] = pin
			return pin, true
		}
	}
	return ImagePin{}, false
}

func (p *Pins) python(need PythonNeed) (PythonPin, bool) {
	pin, ok := p.packages[need.key()]
	return pin, ok
}

// A Pinned is an entry made by [Pins].
type Pinned struct {
	Entry
	pins           *Pins
	image, runtime string // identify the images
}

// Entry returns the entry of a draft that misses nothing.
func (p *Pins) Entry(d Draft) Pinned {
	source, _ := p.file.source(d.Source)
	needs := d.pythonNeeds()
	e := Entry{
		Schema: Schema, Pipeline: p.pipeline,
		Recipe: d.Cell.Recipe.Name, ID: d.Cell.ID, Axes: d.Cell.Axes, Facts: d.Vars,
		Source: source, Homepage: d.Cell.Recipe.Homepage, License: d.Settings.License, Patches: d.Chosen(),
		Image:   p.locked(d.Image, needs[0]),
		Runtime: p.locked(d.Runtime, needs[1]),
		Env:     d.Settings.Env, Script: d.Cell.Recipe.Build, Epoch: cmp.Or(d.Epoch, source.Epoch),
		Profile: d.Settings.Profile, Vendored: d.Settings.Vendored, Memory: d.Memory, Expect: d.Settings.Expect,
		Advisories: d.Settings.Advisories,
	}
	if d.Tests.Kind != "" {
		e.Tests, _ = p.file.source(d.Tests)
	}
	if len(needs) > 2 {
		pin, _ := p.python(needs[2])
		e.TestWheels = pin.Files
	}
	return Pinned{e, p, "image " + d.Image.Name + " " + needs[0].key(), "image " + d.Runtime.Name + " " + needs[1].key()}
}

func (p *Pins) locked(img image.Image, need PythonNeed) Image {
	pin, _ := p.image(img)
	python, _ := p.python(need)
	return Image{Pin: pin, Setup: img.Setup, Env: img.Env, Python: img.Python, Site: img.Site, Wheels: python.Files, Provides: img.Provides}
}

// field is a field of an entry in JSON.
type field struct {
	index               int
	name                string // with quotes and colon
	omitEmpty, omitZero bool
}

// entryFields lists the fields of an entry in their order.
var entryFields = func() (all []field) {
	t := reflect.TypeFor[Entry]()
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		all = append(all, field{i, `"` + name + `":`, options == "omitempty", options == "omitzero"})
	}
	return all
}()

// Key returns the same as [Entry.Key]. It encodes the images and patches once for all
// entries of the pins: do not change them in an entry.
func (e Pinned) Key() string {
	sum := sha256.New()
	entry := reflect.ValueOf(&e.Entry).Elem()
	before := "{"
	for _, f := range entryFields {
		value := entry.Field(f.index)
		if f.omitZero && value.IsZero() || f.omitEmpty && empty(value) {
			continue
		}
		io.WriteString(sum, before+f.name)
		before = ","
		switch part := value.Addr().Interface(); part {
		case any(&e.Entry.Image):
			sum.Write(e.pins.encode(e.image, part))
		case any(&e.Entry.Runtime):
			sum.Write(e.pins.encode(e.runtime, part))
		case any(&e.Entry.Patches):
			e.writePatches(sum)
		default:
			sum.Write(encode(part))
		}
	}
	io.WriteString(sum, "}")
	return hex.EncodeToString(sum.Sum(nil))
}

// writePatches writes the list of patches.
func (e Pinned) writePatches(w io.Writer) {
	if e.Patches == nil {
		io.WriteString(w, "null")
		return
	}
	before := "["
	for i := range e.Patches {
		io.WriteString(w, before)
		before = ","
		w.Write(e.pins.encode("patch "+e.Patches[i].Name, &e.Patches[i]))
	}
	io.WriteString(w, "]")
}

// encode returns the JSON of a part, which is equal for equal names.
func (p *Pins) encode(name string, part any) []byte {
	data, ok := p.encoded[name]
	if !ok {
		data = encode(part)
		p.encoded[name] = data
	}
	return data
}

func encode(part any) []byte {
	data, err := json.Marshal(part)
	if err != nil {
		panic(fmt.Sprintf("lock: a part of an entry is not JSON: %v", err)) // see Entry.Canonical
	}
	return data
}

// empty reports whether encoding/json omits a field with omitempty.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	}
	return v.IsZero()
}
