package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// Write replaces the file at path by run, as a whole or not at all.
func Write(path string, run Run) error {
	content, err := encode(run)
	if err == nil {
		err = atomicfile.Write(path, content)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// maxBytes bounds a file that is read. A run of all cells is a tenth of it.
const maxBytes = 64 << 20

// Read reads a run back. A file of another schema is an error: its numbers
// could mean something else. So is one that is no regular file, or is larger
// than any run.
func Read(path string) (Run, error) {
	content, err := regular.ReadFollowed(path, maxBytes)
	if err != nil {
		return Run{}, fmt.Errorf("reading run: %w", err)
	}
	return decode(path, content)
}

// decode reads what stands in the file at path.
func decode(path string, content []byte) (Run, error) {
	var run Run
	if err := json.Unmarshal([]byte(diag.Redact(string(content))), &run); err != nil {
		return Run{}, fmt.Errorf("reading %s: %w", path, err)
	}
	if run.Schema != Schema {
		return Run{}, fmt.Errorf("reading %s: schema %d, want %d", path, run.Schema, Schema)
	}
	// An artifact carries the key of its cell, which the file states once.
	for _, cell := range run.Cells {
		for i := range cell.Artifacts {
			cell.Artifacts[i].Key = cell.Key
		}
	}
	return run, nil
}

func encode(run Run) ([]byte, error) {
	run.Schema = Schema
	run.Started, run.Finished = stamp(run.Started), stamp(run.Finished)
	run.Cells = list(run.Cells)
	for i, cell := range run.Cells {
		run.Cells[i] = settled(cell)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // evidence is full of < and >
	encoder.SetIndent("", "  ")
	err := encoder.Encode(run)
	return []byte(diag.Redact(b.String())), err // what another wrote may hold an address
}

// stamp is a time as it is written: RFC 3339 in UTC, to the millisecond.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
