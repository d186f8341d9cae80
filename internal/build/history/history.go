// Package history records how long the steps of cells took on this host, and how much
// engine cache each cell needed. A run uses it to estimate its remaining time and the
// space it needs. Builds do not depend on these estimates, so losing the file does no
// harm.
//
// Package results records the outcome of cells. This package has only times and sizes.
//
// The history is one file. It is replaced as a whole under a lock, so any number of
// processes may add to it. An unreadable file is replaced by a new one.
package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"builder/internal/base/atomicfile"
	"builder/internal/base/regular"
	"builder/internal/input/store"
)

// Limits of the file. The oldest additions are removed first.
const (
	maxCells = 500
	maxSteps = 100 // per cell
	maxTimes = 5   // per step
	maxBytes = 16 << 20
)

const schema = 1

// History is the content of the file. The zero value is empty.
type History struct {
	Schema int    `json:"schema"`
	Cells  []cell `json:"cells"` // in the order of their last addition
}

// cell is the record of one cell. Steps holds the seconds of each step, the newest
// last.
type cell struct {
	Recipe string               `json:"recipe"`
	ID     string               `json:"id"`
	Steps  map[string][]float64 `json:"steps"`
	Disk   int64                `json:"disk,omitempty"` // largest size seen, in bytes
}

// Read returns the history of a directory, empty if there is none. If the file is
// damaged, Read removes it and returns an error. The next Add then starts a new file.
func Read(ctx context.Context, dir string) (History, error) {
	h, err := read(dir)
	if _, broken := errors.AsType[*damage](err); !broken {
		return h, err
	}
	err = locked(ctx, dir, func() error {
		var again error
		if h, again = read(dir); again == nil {
			return nil // another process replaced it
		}
		return errors.Join(again, os.Remove(place(dir)))
	})
	return h, err
}

// Add records the seconds that the steps of a cell took. Pass only steps that ran, not
// cached, failed or waiting ones.
func Add(ctx context.Context, dir, recipe, id string, steps map[string]float64) error {
	if len(steps) == 0 {
		return nil
	}
	return change(ctx, dir, id, func(h History) History { return h.with(recipe, id, steps) })
}

// AddDisk records the bytes of engine cache a cell needed.
func AddDisk(ctx context.Context, dir, recipe, id string, bytes int64) error {
	return change(ctx, dir, id, func(h History) History {
		c := h.cell(recipe, id)
		c.Disk = max(c.Disk, bytes)
		return h.put(c)
	})
}

// change replaces the file by its content after with.
func change(ctx context.Context, dir, id string, with func(History) History) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("recording the times of %s: %w", id, err)
	}
	err := locked(ctx, dir, func() error {
		h, err := read(dir)
		if _, broken := errors.AsType[*damage](err); err != nil && !broken {
			return err
		}
		data, err := json.Marshal(with(h))
		if err != nil {
			return err
		}
		return atomicfile.Write(place(dir), data)
	})
	if err != nil {
		return fmt.Errorf("recording the times of %s: %w", id, err)
	}
	return nil
}

// Step estimates the seconds of a step of a cell: the median of its earlier runs, or
// else the median over the other cells of the recipe.
func (h History) Step(recipe, id, step string) (seconds float64, known bool) {
	if times := h.cell(recipe, id).Steps[step]; len(times) > 0 {
		return median(times), true
	}
	var others []float64
	for _, c := range h.Cells {
		if times := c.Steps[step]; c.Recipe == recipe && len(times) > 0 {
			others = append(others, median(times))
		}
	}
	if len(others) == 0 {
		return 0, false
	}
	return median(others), true
}

// Steps estimates the seconds of each step of a cell. The steps are those of its
// earlier runs, or else those of at least half of the recipe's cells. The result is
// empty if nothing is known.
func (h History) Steps(recipe, id string) map[string]float64 {
	had, cells := map[string]int{}, 0
	if own := h.cell(recipe, id); len(own.Steps) > 0 {
		cells = 1
		count(had, own)
	} else {
		for _, c := range h.Cells {
			if c.Recipe == recipe {
				cells++
				count(had, c)
			}
		}
	}
	likely := map[string]float64{}
	for step, n := range had {
		if 2*n >= cells {
			likely[step], _ = h.Step(recipe, id, step)
		}
	}
	return likely
}

func count(had map[string]int, c cell) {
	for step := range c.Steps {
		had[step]++
	}
}

// Cell estimates the seconds of a cell.
func (h History) Cell(recipe, id string) (seconds float64, known bool) {
	for _, s := range h.Steps(recipe, id) {
		seconds, known = seconds+s, true
	}
	return seconds, known
}

// Disk returns the most bytes of engine cache a cell has needed.
func (h History) Disk(recipe, id string) (bytes int64, known bool) {
	bytes = h.cell(recipe, id).Disk
	return bytes, bytes > 0
}

func (h History) cell(recipe, id string) cell {
	i := slices.IndexFunc(h.Cells, func(c cell) bool { return c.Recipe == recipe && c.ID == id })
	if i < 0 {
		return cell{Recipe: recipe, ID: id}
	}
	return h.Cells[i]
}

// with returns a history with the steps of one more build, within the limits.
func (h History) with(recipe, id string, steps map[string]float64) History {
	c := h.cell(recipe, id)
	c.Steps = maps.Clone(c.Steps)
	if c.Steps == nil {
		c.Steps = map[string][]float64{}
	}
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		if old, known := c.Steps[step]; known || len(c.Steps) < maxSteps {
			c.Steps[step] = newest(append(slices.Clone(old), steps[step]), maxTimes)
		}
	}
	return h.put(c)
}

// put returns a history with c as the newest cell.
func (h History) put(c cell) History {
	others := slices.DeleteFunc(slices.Clone(h.Cells), func(o cell) bool { return o.Recipe == c.Recipe && o.ID == c.ID })
	return History{Schema: schema, Cells: newest(append(others, c), maxCells)}
}

// newest returns the last n elements of a list.
func newest[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// median returns the lower middle element for an even number of times, so it is always
// a measured time.
func median(times []float64) float64 {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[(len(sorted)-1)/2]
}

// damage is the error of an unreadable history file.
type damage struct{ err error }

func (d *damage) Error() string {
	return "the times of earlier runs are unreadable, starting a new record: " + d.err.Error()
}

func (d *damage) Unwrap() error { return d.err }

func place(dir string) string { return filepath.Join(dir, "history.json") }

// locked runs f while no other process can write.
func locked(ctx context.Context, dir string, f func() error) error {
	unlock, err := store.Lock(ctx, filepath.Join(dir, "history.lock"), nil)
	if err != nil {
		return err
	}
	defer unlock()
	return f()
}

// read reads the file. It refuses values that no run could write.
func read(dir string) (History, error) {
	data, err := regular.Read(place(dir), maxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return History{}, nil
	}
	if err != nil {
		return History{}, &damage{err}
	}
	var h History
	if err := json.Unmarshal(data, &h); err != nil {
		return History{}, &damage{fmt.Errorf("%s: %w", place(dir), err)}
	}
	if err := h.check(); err != nil {
		return History{}, &damage{fmt.Errorf("%s: %w", place(dir), err)}
	}
	return h, nil
}

// longest is an upper limit for the seconds of a step: one week.
const longest = 7 * 24 * 3600

func (h History) check() error {
	if h.Schema != schema {
		return fmt.Errorf("schema %d, want %d", h.Schema, schema)
	}
	for _, c := range h.Cells {
		if c.Disk < 0 {
			return fmt.Errorf("%q used %d bytes of disk", c.ID, c.Disk)
		}
		for step, times := range c.Steps {
			for _, t := range times {
				if t < 0 || t > longest || math.IsNaN(t) {
					return fmt.Errorf("step %q of %q took %g seconds", step, c.ID, t)
				}
			}
		}
	}
	return nil
}
