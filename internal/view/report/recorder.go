package report

import (
	"fmt"
	"sync"
	"time"
)

// A Recorder keeps run.json up to date while cells end in any order. It is safe for
// concurrent use.
type Recorder struct {
	mu    sync.Mutex
	path  string
	run   Run
	index map[string]int // from a cell's id to its index
}

// NewRecorder writes run with the cells to build, in their final order. A cell is
// skipped until its update.
func NewRecorder(path string, run Run) (*Recorder, error) {
	r := &Recorder{path: path, run: run, index: map[string]int{}}
	r.run.Schema, r.run.Cells = Schema, nil
	for i, cell := range run.Cells {
		if _, twice := r.index[cell.ID]; twice {
			return nil, fmt.Errorf("recording run: cell %q appears twice", cell.ID)
		}
		r.index[cell.ID] = i
		r.run.Cells = append(r.run.Cells, settled(cell))
	}
	return r, Write(path, r.run)
}

// Update replaces the cell with the same id and writes the file.
func (r *Recorder) Update(cell Cell) error {
	cell = settled(cell)
	r.mu.Lock()
	defer r.mu.Unlock()
	i, known := r.index[cell.ID]
	if !known {
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
