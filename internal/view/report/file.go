package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// Write atomically replaces the file at path by run.
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

// maxBytes bounds the size of a file to read. A run of all cells has a tenth of it.
const maxBytes = 64 << 20

// Read reads a run from a file. It refuses other schemas, because their numbers may
// have another meaning, and files that are too large or not regular.
func Read(path string) (Run, error) {
	content, err := regular.ReadFollowed(path, maxBytes)
	if err != nil {
		return Run{}, fmt.Errorf("reading run: %w", err)
	}
	var run Run
	if err := json.Unmarshal([]byte(diag.Redact(string(content))), &run); err != nil {
		return Run{}, fmt.Errorf("reading %s: %w", path, err)
	}
	if run.Schema != Schema {
		return Run{}, fmt.Errorf("reading %s: schema %d, want %d", path, run.Schema, Schema)
	}
	// The file states the key of a cell once. Each artifact gets a copy.
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
	encoder.SetEscapeHTML(false) // evidence often holds < and >
	encoder.SetIndent("", "  ")
	err := encoder.Encode(run)
	return []byte(diag.Redact(b.String())), err // text from other programs may hold an address with credentials
}

// stamp rounds a time to the format of the file: RFC 3339 in UTC, to the millisecond.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// A Recorder keeps run.json up to date while cells end in any order. It is safe for
// concurrent use.
type Recorder struct {
	mu   sync.Mutex
	path string
	run  Run
}

// NewRecorder writes run with the cells to build, in their final order. A cell is
// skipped until its update.
func NewRecorder(path string, run Run) (*Recorder, error) {
	r := &Recorder{path: path, run: run}
	r.run.Schema, r.run.Cells = Schema, nil
	for _, cell := range run.Cells {
		r.run.Cells = append(r.run.Cells, settled(cell))
	}
	return r, Write(path, r.run)
}

// Update replaces the cell with the same id and writes the file.
func (r *Recorder) Update(cell Cell) error {
	cell = settled(cell)
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.run.Cells, func(c Cell) bool { return c.ID == cell.ID })
	if i < 0 {
		return fmt.Errorf("recording run: cell %q is not part of it", cell.ID)
	}
	r.run.Cells[i] = cell
	return Write(r.path, r.run)
}

// Finish sets the end of the run, writes the file and returns the run.
func (r *Recorder) Finish(at time.Time) (Run, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run.Finished = at
	run := r.run
	run.Cells = list(run.Cells)
	return run, Write(r.path, r.run)
}
