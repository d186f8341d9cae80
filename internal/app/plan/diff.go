package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/plan/lock"
	"builder/pipelines"
)

// A Comparison finds the earlier entry of a cell; nil compares nothing.
type Comparison func(lock.Draft) (had earlier, err error)

// earlier is the earlier entry of a cell.
type earlier struct {
	entry   lock.Entry
	place   string // its file
	missing string // why there is no entry, or empty
}

// WithRun compares with the entries of a run below out.
func WithRun(out string) Comparison {
	return func(d lock.Draft) (earlier, error) {
		dir := filepath.Join(out, d.Cell.ID)
		had := earlier{place: filepath.Join(dir, lock.EntryFile)}
		entry, err := lock.ReadEntry(dir)
		if errors.Is(err, fs.ErrNotExist) {
			had.missing = "no earlier run: missing " + had.place
			return had, nil
		}
		had.entry = entry
		return had, err
	}
}

// maxLock limits the size of the lock to compare with.
const maxLock = 32 << 20

// WithLock compares with the entries made from today's recipe and another lock.
func WithLock(file, recipe string) (Comparison, error) {
	f, err := os.Open(file) // may be a pipe: <(git show HEAD:recipes/NAME.lock.json)
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "--since: %w", err)
	}
	defer f.Close()
	data, err := regular.All(f, maxLock)
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "--since: %w", err)
	}
	other, err := lock.Decode(file, data)
	if err != nil {
		return nil, diag.HintAll(err, "use the lock from version control")
	}
	if other.Recipe != recipe {
		return nil, diag.Errorf(diag.Usage, "--since: %s is the lock of %q", file, other.Recipe)
	}
	return func(d lock.Draft) (earlier, error) {
		had := earlier{place: file}
		drafts := []lock.Draft{d}
		if missing := other.Missing(drafts); !missing.None() {
			had.missing = fmt.Sprintf("%s lacks %s", file, missing)
			return had, nil
		}
		entries, err := lock.Assemble(drafts, other, Revision())
		if err != nil {
			return had, err
		}
		had.entry = entries[0]
		return had, nil
	}, nil
}

// A PlannedDiff lists the changes in a cell and the steps to run again.
type PlannedDiff struct {
	With    string        `json:"with,omitempty"`    // file to compare with
	Missing string        `json:"missing,omitempty"` // why there is nothing to compare
	Changes []lock.Change `json:"changes"`
	From    string        `json:"from,omitempty"` // first step to run again
	Again   []string      `json:"again"`          // From and all later steps
	Result  string        `json:"result"`         // the same in words
}

// diff compares the entry of a cell with its earlier entry. known is true if the store
// has the result.
func (with Comparison) diff(d lock.Draft, now lock.Entry, known bool) (*PlannedDiff, error) {
	had, err := with(d)
	if err != nil {
		return nil, err
	}
	p := &PlannedDiff{With: had.place, Missing: had.missing, Changes: []lock.Change{}}
	if had.missing == "" {
		p.Changes = append(p.Changes, lock.Diff(had.entry, now)...)
	}
	switch {
	case known:
		p.Result = "nothing runs again: the result is in the store"
	case had.missing != "":
		p.From, p.Result = lock.Steps()[0], "every step runs"
	case len(p.Changes) == 0:
		p.From, p.Result = lock.Steps()[0], "no changes, and no result in the store: every step runs, or comes from the engine's cache"
	default:
		p.From = lock.First(p.Changes)
		p.Result = "runs again from step " + p.From + ": " + strings.Join(stepsFrom(p.From), ", ")
	}
	p.Again = stepsFrom(p.From)
	return p, nil
}

// undecided is the diff of a cell not yet pinned by the lock.
func undecided() *PlannedDiff {
	const why = "the lock does not pin the cell yet"
	return &PlannedDiff{Missing: why, Changes: []lock.Change{}, From: lock.Steps()[0], Again: stepsFrom(lock.Steps()[0]), Result: "`builder lock` tells which steps run again"}
}

// stepsFrom returns a step and all later ones, ending with the gates.
func stepsFrom(step string) []string {
	names := append(pipelines.Names(), "gates")
	i := slices.Index(names, step)
	if i < 0 {
		return []string{}
	}
	return names[i:]
}
