package report

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

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
