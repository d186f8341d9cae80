package plan

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/plan/lock"
	"builder/pipelines"
)

// A PlannedDiff lists the changes in a cell and the steps to run again.
type PlannedDiff struct {
	With    string        `json:"with,omitempty"`    // file of the earlier entry
	Missing string        `json:"missing,omitempty"` // why there is nothing to compare
	Changes []lock.Change `json:"changes"`
	From    string        `json:"from,omitempty"` // first step to run again
	Again   []string      `json:"again"`          // From and all later steps
	Result  string        `json:"result"`         // the same in words
}

// diffSince compares the entry of a cell with that of the last run below out. known is
// true if the store has the result.
func diffSince(out string, now lock.Entry, known bool) (*PlannedDiff, error) {
	p := &PlannedDiff{Changes: []lock.Change{}}
	dir := filepath.Join(out, now.ID)
	file := filepath.Join(dir, lock.EntryFile)
	had, err := lock.ReadEntry(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.With, p.Missing = file, "no earlier run: missing "+file
	case err != nil:
		return nil, err
	default:
		p.With, p.Changes = file, append(p.Changes, lock.Diff(had, now)...)
	}
	switch {
	case known:
		p.Result = "nothing runs again: the result is in the store"
	case p.Missing != "":
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
