// Package proven reads and writes the record of proven cells: the cells built, and the
// results of their gates. builder verify --record writes it, from signed statements
// alone.
package proven

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"builder/internal/base/atomicfile"
	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// Name is the file name of the record, beside the recipes.
const Name = "proven.json"

// schema is the version of the file format.
const schema = 1

// maxSize limits the file in bytes. An entry takes about 300.
const maxSize = 16 << 20

// The levels of upstream's tests, from the lowest to the highest.
const (
	None  = "none"
	Quick = "quick"
	Full  = "full"
)

// higher returns the higher of two levels. An unknown level is the lowest.
func higher(a, b string) string {
	levels := []string{"", None, Quick, Full}
	return levels[max(slices.Index(levels, a), slices.Index(levels, b), 0)]
}

// A Proof records the evidence for one cell.
type Proof struct {
	Recipe  string `json:"recipe"`
	Key     string `json:"key"`     // of the lock entry it was built from
	Wheel   string `json:"wheel"`   // sha256 of the artifact
	Gates   int    `json:"gates"`   // passed or waived
	Rebuilt bool   `json:"rebuilt"` // a second build gave the same bytes
	GPUs    bool   `json:"gpus"`    // every gate on GPUs passed
	// Tests is the level of upstream's tests that passed: None, quick or full. It is
	// empty in a record that does not state it.
	Tests string `json:"tests,omitempty"`
	Day   string `json:"day"` // of the newest verdict, in UTC: 2026-11-22
	// Site is set for a proof from the file of a site, for which builder does not vouch.
	Site bool `json:"-"`
}

// Cells maps the ids of proven cells to their proofs.
type Cells map[string]Proof

// A Standing states how far a cell is proven.
type Standing struct {
	Built   bool   `json:"built"`             // was built and gated
	Current bool   `json:"current"`           // from the inputs in today's lock
	Day     string `json:"day,omitempty"`     // of the newest verdict, in UTC
	Gates   int    `json:"gates,omitempty"`   // passed or waived
	Rebuilt bool   `json:"rebuilt,omitempty"` // a second build gave the same bytes
	GPUs    bool   `json:"gpus,omitempty"`    // every gate on GPUs passed
	Tests   string `json:"tests,omitempty"`   // level of upstream's tests that passed; "" is unknown
	Site    bool   `json:"site,omitempty"`    // a site states it, and builder does not
}

// Standing returns the standing of the cell with this id. key is the key of its entry
// in today's lock, or "" if the lock is incomplete.
func (cells Cells) Standing(id, key string) Standing {
	p, ok := cells[id]
	if !ok {
		return Standing{}
	}
	return Standing{Built: true, Current: p.Key == key, Day: p.Day, Gates: p.Gates, Rebuilt: p.Rebuilt, GPUs: p.GPUs, Tests: p.Tests, Site: p.Site}
}

// testsSaid maps the levels of upstream's tests to the words of [Standing.String].
var testsSaid = map[string]string{
	None:  " without upstream's tests",
	Quick: " with upstream's tests (quick)",
	Full:  " with upstream's tests (full)",
}

// String returns the standing in one line, such as "2026-11-22: 13 gates passed
// with upstream's tests (full), rebuilt to the same bytes, no GPU".
func (s Standing) String() string {
	if !s.Built {
		return "never built"
	}
	text := fmt.Sprintf("%s: %d gates passed", s.Day, s.Gates) + testsSaid[s.Tests]
	if s.Rebuilt {
		text += ", rebuilt to the same bytes"
	} else {
		text += ", not rebuilt"
	}
	if s.GPUs {
		text += ", on GPUs"
	} else {
		text += ", no GPU"
	}
	if s.Site {
		text += ", as the site states"
	}
	if !s.Current {
		text += "; its inputs have changed since"
	}
	return text
}

type file struct {
	Schema int   `json:"schema"`
	Cells  Cells `json:"cells"`
}

// Read returns the cells recorded in the file of a folder. A folder without the file
// has none.
func Read(folder fs.FS) (Cells, error) {
	data, err := fs.ReadFile(folder, Name)
	if errors.Is(err, fs.ErrNotExist) {
		return Cells{}, nil
	}
	if err != nil {
		return nil, err
	}
	return parse(Name, data)
}

// parse reads the content of a file. name is for messages.
func parse(name string, data []byte) (Cells, error) {
	var f file
	if err := decode.JSON(data, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if f.Schema != schema {
		return nil, fmt.Errorf("%s: schema %d, this version reads %d", name, f.Schema, schema)
	}
	if f.Cells == nil {
		f.Cells = Cells{}
	}
	return f.Cells, nil
}

// Record merges cells into the file at path and creates the file if needed. A second
// proof of the same bytes adds to the first.
func Record(path string, cells Cells) error {
	known := Cells{}
	data, err := regular.Read(path, maxSize)
	switch {
	case err == nil:
		if known, err = parse(path, data); err != nil {
			return diag.Errorf(diag.Usage, "recording the proof: %w", err)
		}
	case !errors.Is(err, os.ErrNotExist):
		return diag.Errorf(diag.Usage, "recording the proof: %w", err)
	}
	for id, c := range cells {
		if before, ok := known[id]; ok && before.Key == c.Key && before.Wheel == c.Wheel {
			c.Rebuilt, c.GPUs = c.Rebuilt || before.Rebuilt, c.GPUs || before.GPUs
			c.Tests = higher(c.Tests, before.Tests)
		}
		known[id] = c
	}
	text, err := json.MarshalIndent(file{schema, known}, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(text, '\n'))
}
