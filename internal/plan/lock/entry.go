package lock

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/input/pypi"
	"builder/internal/plan/image"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
)

// EntryFile is the name of an entry's file in the directory of its cell. The sha256 of
// the file is the key of the cell.
const EntryFile = "entry.json"

// An Entry is a cell with all inputs by digest. Nothing outside it can influence the
// build, and every field is part of its [Entry.Key].
type Entry struct {
	Schema   int               `json:"schema"`
	Pipeline string            `json:"pipeline"` // digest of the scripts of the steps
	Recipe   string            `json:"recipe"`
	ID       string            `json:"id"`
	Axes     map[string]string `json:"axes"`
	Facts    map[string]string `json:"facts"` // names that patches may use
	Source   SourcePin         `json:"source"`
	Homepage string            `json:"homepage,omitempty"` // of the source; its owner stands in the SBOM
	License  string            `json:"license,omitempty"`  // of the source, as an SPDX expression
	Patches  []patch.Patch     `json:"patches"`
	Image    Image             `json:"image"`
	Runtime  Image             `json:"runtime"`
	Env      map[string]string `json:"env"`
	Script   string            `json:"script"`
	Epoch    int64             `json:"epoch"`
	Inputs   []Input           `json:"inputs,omitempty"`
	Profile  []recipe.Variable `json:"profile,omitempty"`
	Vendored []recipe.Vendored `json:"vendored,omitempty"`
	// Tests is the tree of upstream's tests. TestWheels are the packages they need in
	// addition to the run-time packages.
	Tests      SourcePin     `json:"tests,omitzero"`
	TestWheels []pypi.File   `json:"test-wheels,omitempty"`
	Expect     recipe.Expect `json:"expect"`
	// Advisories lists known vulnerabilities of the source. Patches determines which of
	// them are closed.
	Advisories []recipe.Advisory `json:"advisories,omitempty"`
}

// An Input is a cell of another recipe. Its wheel is installed before the build and
// beside the artifact. Key represents its whole content.
type Input struct {
	Recipe string            `json:"recipe"`
	ID     string            `json:"id"`
	Key    string            `json:"key"`
	Axes   map[string]string `json:"axes,omitempty"`
}

// An Image is a locked base image and the Python packages installed in it.
type Image struct {
	Pin      ImagePin              `json:"pin"`
	Setup    string                `json:"setup,omitempty"`
	Env      map[string]string     `json:"env"`
	Python   string                `json:"python"`
	CPython  *image.CPython        `json:"cpython,omitempty"` // laid into the image
	Site     bool                  `json:"site,omitempty"`    // the interpreter's packages belong to the image
	Wheels   []pypi.File           `json:"wheels"`
	Provides map[string]image.Fact `json:"provides"`
}

// Differences names the fields in which two entries of a cell differ, and the patches
// that only one of them has.
func Differences(a, b Entry) []string {
	var all [2]map[string]any
	var named [2]map[string]string
	for i, e := range []Entry{a, b} {
		_ = json.Unmarshal([]byte(encoded(e)), &all[i]) // it was encoded just now
		named[i] = map[string]string{}
		for _, p := range e.Patches {
			named[i]["patch "+p.Name] = encoded(p)
		}
	}
	differ := differences(named[0], named[1], func(x, y string) bool { return x == y })
	delete(all[0], "patches")
	delete(all[1], "patches")
	return append(differ, differences(all[0], all[1], func(x, y any) bool { return reflect.DeepEqual(x, y) })...)
}

// differences returns the sorted keys of which the values differ, or that one map lacks.
func differences[T any](a, b map[string]T, equal func(x, y T) bool) (keys []string) {
	for key, x := range a {
		if y, both := b[key]; !both || !equal(x, y) {
			keys = append(keys, key)
		}
	}
	for key := range b {
		if _, both := a[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// RequirementsEnd is the suffix of a cell's requirements file, after its id.
const RequirementsEnd = ".requirements.txt"

// Pulled returns the pins of the entry's images that come from a registry, each once.
func (e Entry) Pulled() []ImagePin {
	var pins []ImagePin
	for _, p := range []ImagePin{e.Image.Pin, e.Runtime.Pin} {
		if p.Registry != "" && (len(pins) == 0 || pins[0].Reference() != p.Reference()) {
			pins = append(pins, p)
		}
	}
	return pins
}

// WriteEntry writes an entry atomically to the directory of its cell, which it creates
// if necessary.
func WriteEntry(dir string, e Entry) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	_, err := writeChanged(filepath.Join(dir, EntryFile), e.Canonical())
	return err
}

// ReadEntry reads the entry in the directory of a cell. If there is none, the error is
// [fs.ErrNotExist].
func ReadEntry(dir string) (Entry, error) {
	e, err := ReadEntryFile(filepath.Join(dir, EntryFile))
	if diag.CodeOf(err) == diag.Drift {
		err = diag.HintAll(err, "remove the file: the next run writes a new one")
	}
	return e, err
}

// maxEntry bounds the size of an entry file, in bytes. An entry with a thousand
// packages takes a tenth of it.
const maxEntry = 8 << 20

// ReadEntryFile is like [ReadEntry] for a file that the user names.
func ReadEntryFile(path string) (Entry, error) {
	data, err := regular.Read(path, maxEntry)
	if err != nil {
		return Entry{}, err
	}
	e, err := ParseEntry(data)
	if err != nil {
		return Entry{}, diag.Errorf(diag.Drift, "%s: reading the entry of a run: %w", path, err).
			WithHint("name an %s that `builder run` wrote", EntryFile)
	}
	return e, nil
}

// ParseEntry parses the output of [Entry.Canonical].
func ParseEntry(data []byte) (Entry, error) {
	var e Entry
	if err := decode.OpenJSON(data, &e); err != nil {
		return Entry{}, err
	}
	if e.Schema != EntrySchema {
		return Entry{}, fmt.Errorf("the schema is %d, and this builder reads %d", e.Schema, EntrySchema)
	}
	return e, nil
}
