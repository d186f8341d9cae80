// Package history remembers how long the steps of cells took on this host and how
// much of the engine's cache, so that a run can say how long it is likely to go on,
// and whether there is room. It is a guess from what was really
// done: nothing that is built depends on it, and to lose it costs nothing.
//
// What cells made is in results; here are times and sizes alone.
//
// It is one file, which is replaced as a whole under a lock: any number of
// processes may add to it. A file that cannot be read is begun anew.
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

// The bounds of the file. What was added longest ago goes first.
const (
	maxCells = 500
	maxSteps = 100 // of a cell
	maxTimes = 5   // of a step
	maxBytes = 16 << 20
)

const schema = 1

// History is what is known. The zero value knows nothing.
type History struct {
	Schema int    `json:"schema"`
	Cells  []cell `json:"cells"` // in the order in which they were added to last
}

// cell is what is known of one cell: for each step the seconds that it took, the
// newest last.
type cell struct {
	Recipe string               `json:"recipe"`
	ID     string               `json:"id"`
	Steps  map[string][]float64 `json:"steps"`
	Disk   int64                `json:"disk,omitempty"` // bytes; the most that was seen
}

// Read returns what is kept in a directory, nothing where there is none. A file
// that is damaged is taken away and told, once: the next is begun anew.
func Read(ctx context.Context, dir string) (History, error) {
	h, err := read(dir)
	if _, broken := errors.AsType[*damage](err); !broken {
		return h, err
	}
	err = locked(ctx, dir, func() error {
		var again error
		if h, again = read(dir); again == nil {
			return nil // somebody was faster
		}
		return errors.Join(again, os.Remove(place(dir)))
	})
	return h, err
}

// Add notes how many seconds the steps of a cell took. Only what was really done
// belongs here: not what was cached, failed or waited.
func Add(ctx context.Context, dir, recipe, id string, steps map[string]float64) error {
	if len(steps) == 0 {
		return nil
	}
	return change(ctx, dir, id, func(h History) History { return h.with(recipe, id, steps) })
}

// AddDisk notes how many bytes a cell took of the engine's cache.
func AddDisk(ctx context.Context, dir, recipe, id string, bytes int64) error {
	return change(ctx, dir, id, func(h History) History {
		c := h.cell(recipe, id)
		c.Disk = max(c.Disk, bytes)
		return h.put(c)
	})
}

// change replaces the file by one that knows more of a cell.
func change(ctx context.Context, dir, id string, with func(History) History) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("keeping the times of %s: %w", id, err)
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
		return fmt.Errorf("keeping the times of %s: %w", id, err)
	}
	return nil
}

// Step returns how many seconds a step of a cell is likely to take: as long as it
// took before, or as the same step takes in most cells of the recipe.
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

// Steps returns how many seconds each step of a cell is likely to take: the steps
// that it had before, or those that at least half of the recipe's cells had. It is
// empty where nothing is known.
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

// Cell returns how many seconds a cell is likely to take.
func (h History) Cell(recipe, id string) (seconds float64, known bool) {
	for _, s := range h.Steps(recipe, id) {
		seconds, known = seconds+s, true
	}
	return seconds, known
}

// Disk returns how many bytes of the engine's cache a cell took before.
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

// with returns a history that knows of one build more, within its bounds.
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

// put returns a history in which a cell is the newest.
func (h History) put(c cell) History {
	others := slices.DeleteFunc(slices.Clone(h.Cells), func(o cell) bool { return o.Recipe == c.Recipe && o.ID == c.ID })
	return History{Schema: schema, Cells: newest(append(others, c), maxCells)}
}

// newest returns the last n of a list.
func newest[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// median of an even number is the lower of the two in the middle: a time that was
// measured.
func median(times []float64) float64 {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[(len(sorted)-1)/2]
}

// damage is a file that is no history.
type damage struct{ err error }

func (d *damage) Error() string {
	return "the times of earlier runs cannot be read and are begun anew: " + d.err.Error()
}

func (d *damage) Unwrap() error { return d.err }

func place(dir string) string { return filepath.Join(dir, "history.json") }

// locked keeps other processes from writing while f does.
func locked(ctx context.Context, dir string, f func() error) error {
	unlock, err := store.Lock(ctx, filepath.Join(dir, "history.lock"), nil)
	if err != nil {
		return err
	}
	defer unlock()
	return f()
}

// read reads the file, and believes nothing that no run would have written.
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

// longest is more seconds than any step takes: a week.
const longest = 7 * 24 * 3600

func (h History) check() error {
	if h.Schema != schema {
		return fmt.Errorf("schema %d, want %d", h.Schema, schema)
	}
	for _, c := range h.Cells {
		if c.Disk < 0 {
			return fmt.Errorf("%q took %d bytes", c.ID, c.Disk)
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
