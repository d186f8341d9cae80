package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/plan/lock"
	"builder/pipelines"
)

func planFlags() []cli.Flag {
	return append(selectionFlags(),
		allFlag("leave every axis open that is not named"),
		&cli.BoolFlag{Name: "diff", Usage: "say what has changed since the last run that was begun, and which steps run again"},
		&cli.StringFlag{Name: "against", Usage: "say it against the entries that another `LOCK` gives, a file *.lock.json"},
		outFlag("the last run wrote its results below `DIR`"),
	)
}

// A comparison finds the entry that a cell had; nil compares nothing.
type comparison func(lock.Draft) (had earlier, err error)

// earlier is the entry that a cell had.
type earlier struct {
	entry   lock.Entry
	place   string // where it stands
	missing string // why there is none, or empty
}

// readComparison reads what a plan is to be compared with.
func readComparison(c *cli.Context, o options) (comparison, error) {
	// What is said for every run contradicts nothing that is asked of this plan.
	out := c.IsSet("out") && os.Getenv("BUILDER_OUT") == ""
	switch file := c.String("against"); {
	case c.IsSet("against") && out:
		return nil, diag.Errorf(diag.Usage, "--against names a lock and --out a run: give one of them")
	case c.IsSet("against"):
		return withLock(file, o.recipe.Name)
	case c.Bool("diff"):
		return withRun(o.out), nil
	case out:
		return nil, diag.Errorf(diag.Usage, "--out says where the last run is: it needs --diff")
	}
	return nil, nil
}

// withRun compares with the entries that a run below out began with.
func withRun(out string) comparison {
	return func(d lock.Draft) (earlier, error) {
		dir := filepath.Join(out, d.Cell.ID)
		had := earlier{place: filepath.Join(dir, lock.EntryFile)}
		entry, err := lock.ReadEntry(dir)
		if errors.Is(err, fs.ErrNotExist) {
			had.missing = "no run was begun: there is no " + had.place
			return had, nil
		}
		had.entry = entry
		return had, err
	}
}

// maxLock bounds the lock that a plan is compared with.
const maxLock = 32 << 20

// withLock compares with the entries of today's recipe and another lock.
func withLock(file, recipe string) (comparison, error) {
	f, err := os.Open(file) // a pipe too: <(git show HEAD:recipes/NAME.lock.json)
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "--against: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxLock+1))
	if err == nil && len(data) > maxLock {
		err = fmt.Errorf("%s is larger than %d bytes", file, maxLock)
	}
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "--against: %w", err)
	}
	other, err := lock.Decode(file, data)
	if err != nil {
		return nil, diag.HintAll(err, "take the lock as version control has it")
	}
	if other.Recipe != recipe {
		return nil, diag.Errorf(diag.Usage, "--against: %s is the lock of %q", file, other.Recipe)
	}
	return func(d lock.Draft) (earlier, error) {
		had := earlier{place: file}
		drafts := []lock.Draft{d}
		if missing := other.Missing(drafts); !missing.None() {
			had.missing = fmt.Sprintf("%s lacks %s", file, missing)
			return had, nil
		}
		entries, err := lock.Assemble(drafts, other, revision())
		if err != nil {
			return had, err
		}
		had.entry = entries[0]
		return had, nil
	}, nil
}

// plannedDiff is what changed in a cell, and what run does again for it.
type plannedDiff struct {
	With    string        `json:"with,omitempty"`    // file that the cell is compared with
	Missing string        `json:"missing,omitempty"` // why there is nothing to compare
	Changes []lock.Change `json:"changes"`
	From    string        `json:"from,omitempty"` // first step that runs again
	Again   []string      `json:"again"`          // it and everything behind it
	Result  string        `json:"result"`         // the same in words
}

// diff compares the entry of a cell with the one that it had; known says that
// the store has the result.
func (with comparison) diff(d lock.Draft, now lock.Entry, known bool) (*plannedDiff, error) {
	had, err := with(d)
	if err != nil {
		return nil, err
	}
	p := &plannedDiff{With: had.place, Missing: had.missing, Changes: []lock.Change{}}
	if had.missing == "" {
		p.Changes = append(p.Changes, lock.Diff(had.entry, now)...)
	}
	switch {
	case known:
		p.Result = "nothing runs again: the result is in the store"
	case had.missing != "":
		p.From, p.Result = lock.Steps()[0], "every step runs"
	case len(p.Changes) == 0:
		p.From, p.Result = lock.Steps()[0], "nothing differs and the store has no result: every step runs, or is in the engine's cache"
	default:
		p.From = lock.First(p.Changes)
		p.Result = "runs again from step " + p.From + ": " + strings.Join(stepsFrom(p.From), ", ")
	}
	p.Again = stepsFrom(p.From)
	return p, nil
}

// undecided is the comparison of a cell that the lock does not pin yet.
func undecided() *plannedDiff {
	const why = "the lock does not pin the cell yet"
	return &plannedDiff{Missing: why, Changes: []lock.Change{}, From: lock.Steps()[0], Again: stepsFrom(lock.Steps()[0]), Result: "every step runs"}
}

// stepsFrom returns a step and everything behind it, the gates last.
func stepsFrom(step string) []string {
	var names []string
	for _, s := range pipelines.Steps() {
		names = append(names, s.Name)
	}
	names = append(names, "gates")
	i := slices.Index(names, step)
	if i < 0 {
		return []string{}
	}
	return names[i:]
}

func (p plannedDiff) explain(line func(name, format string, args ...any)) {
	if p.Missing != "" {
		line("diff", "%s", p.Missing)
	} else {
		line("diff", "with %s", p.With)
	}
	for _, c := range p.Changes {
		line("", "%-9s%s", c.Step, changed(c))
	}
	line("", "%s", p.Result)
}

// changed says a change in words.
func changed(c lock.Change) string {
	switch {
	case c.Was == "":
		return c.What + ": new, " + c.Is
	case c.Is == "":
		return c.What + ": gone, was " + c.Was
	}
	return c.What + ": " + c.Is + ", was " + c.Was
}
