package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"builder/internal/base/regular"
	"builder/internal/files/wheel"
	"builder/internal/input/store"
	"builder/internal/plan/recipe"
)

// Format is the version of the format of the files written beside the wheels.
const Format = 1

// Names of the files of a stack in the directory of its results.
const (
	Folder       = "wheelhouse"
	manifestFile = "manifest.json"
	Requirements = "requirements.txt"
	profileFile  = "profile.env"
)

// maxManifest bounds the size of a manifest to read, in bytes.
const maxManifest = 16 << 20

// A Manifest lists the wheels of a wheelhouse and the origin of each. It holds no time
// and no path, so the same entry has the same manifest.
type Manifest struct {
	Format   int               `json:"format"`
	Stack    string            `json:"stack"`
	Key      string            `json:"key"`   // of the stack's entry
	Parts    []Built           `json:"parts"` // in the order of the stack
	Extra    []Wheel           `json:"extra"` // from the Python index, by name
	Provided []recipe.Provided `json:"provided"`
}

// A Wheel is one file of the wheelhouse.
type Wheel struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"` // bytes
}

func (w Wheel) blob() store.Blob { return store.Blob{Name: w.Name, SHA256: w.SHA256} }

// Built is the wheel of a part and its cell.
type Built struct {
	Wheel
	Recipe string            `json:"recipe"`
	Cell   string            `json:"cell"`
	Key    string            `json:"key"`
	Axes   map[string]string `json:"axes"`
}

// Wheels lists all wheels, those of the parts first.
func (m Manifest) Wheels() []Wheel {
	var all []Wheel
	for _, p := range m.Parts {
		all = append(all, p.Wheel)
	}
	return append(all, m.Extra...)
}

// Open reads the manifest in the directory of a stack's results. It fails if an entry
// is not the name of a wheel in the wheelhouse, or if a wheel has a different digest.
func Open(dir string) (Manifest, error) {
	var m Manifest
	data, err := regular.Read(filepath.Join(dir, manifestFile), maxManifest)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("reading %s: %w", manifestFile, err)
	}
	if m.Format != Format {
		return m, fmt.Errorf("%s has format %d, and this builder reads %d", manifestFile, m.Format, Format)
	}
	var errs []error
	for _, w := range m.Wheels() {
		if _, err := wheel.ParseName(w.Name); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, w.blob().Check(filepath.Join(dir, Folder, w.Name)))
	}
	return m, errors.Join(errs...)
}
