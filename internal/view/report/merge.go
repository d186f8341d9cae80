package report

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"builder/internal/base/diag"
	"builder/internal/plan/stack"
)

// A Part is one of several runs to merge.
type Part struct {
	Dir string // directory of the run
	Run Run
}

// Open reads the run in a directory. The run may come from another machine, so Open
// refuses names that lead outside the directory. It sets the paths of artifacts and
// logs to places below dir and opens none of them.
func Open(dir string) (Part, error) {
	path := filepath.Join(dir, "run.json")
	run, err := Read(path)
	if err != nil {
		return Part{}, diag.Errorf(diag.Usage, "%w", err).WithHint("give directories with the results of builder run")
	}
	var errs []error
	seen := map[string]bool{}
	for _, cell := range run.Cells {
		if seen[cell.ID] {
			errs = append(errs, diag.Errorf(diag.Usage, "%s: cell %q appears twice", path, cell.ID))
		}
		seen[cell.ID] = true
		for _, name := range place(cell, dir) {
			err := diag.Errorf(diag.Usage, "%s: cell %q: %q is outside the directory", path, cell.ID, name)
			if filepath.IsAbs(name) {
				err = err.WithHint("a run names its files below its own directory, and so does runs merged from relative directories: merge again with relative ones")
			}
			errs = append(errs, err)
		}
	}
	return Part{dir, run}, errors.Join(errs...)
}

// place sets the paths of a cell's files to places below dir. It returns the names that
// lead outside.
func place(c Cell, dir string) (outside []string) {
	if !plain(strings.TrimPrefix(c.ID, stack.Prefix)) {
		return []string{c.ID}
	}
	for i, a := range c.Artifacts {
		name := a.Name
		if _, inside, ok := strings.Cut(a.Path, "/"+c.ID+"/"); ok { // a refused wheel is in a subdirectory
			name = inside
		}
		base := strings.TrimPrefix(a.Name, stack.Folder+"/")
		if !plain(base) || !filepath.IsLocal(name) || filepath.Base(name) != base {
			outside = append(outside, cmp.Or(name, a.Name))
		}
		c.Artifacts[i].Path = filepath.Join(dir, c.ID, name)
	}
	for i, s := range c.Steps {
		if s.Log == "" {
			continue
		}
		if !filepath.IsLocal(s.Log) {
			outside = append(outside, s.Log)
		}
		c.Steps[i].Log = filepath.Join(dir, s.Log)
	}
	return outside
}

// plain reports whether a name is a plain file name.
func plain(name string) bool {
	return filepath.IsLocal(name) && name == filepath.Base(name) && name != "."
}

// Merge joins runs into one, with the cells sorted by id. For a cell in several runs the
// worst result counts, and of equal ones the first; a skipped result counts least.
// expected lists the required cells: a missing one becomes skipped. Runs with different
// keys or different bytes for the same cell are an error that lists every contradiction.
func Merge(parts []Part, expected []Cell) (Run, error) {
	merged := Run{Schema: Schema, Cells: []Cell{}}
	results := map[string][]result{}
	for _, p := range parts {
		for _, cell := range p.Run.Cells {
			results[cell.ID] = append(results[cell.ID], result{p.Dir, settled(cell)})
		}
	}
	for _, cell := range expected {
		if len(results[cell.ID]) == 0 {
			results[cell.ID] = []result{{cell: settled(cell)}}
		}
	}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(results)) {
		errs = append(errs, contradictions(results[id])...)
		merged.Cells = append(merged.Cells, slices.MaxFunc(results[id], result.compare).cell)
	}
	merged.Builder = each(parts, func(r Run) string { return r.Builder })
	merged.Engine.Kind = each(parts, func(r Run) string { return r.Engine.Kind })
	merged.Engine.Version = each(parts, func(r Run) string { return r.Engine.Version })
	merged.Engine.Address = each(parts, func(r Run) string { return r.Engine.Address })
	merged.Started, merged.Finished = span(parts)
	return merged, errors.Join(errs...)
}

// each joins the distinct values of the runs.
func each(parts []Part, value func(Run) string) string {
	var all []string
	for _, p := range parts {
		for v := range strings.SplitSeq(value(p.Run), ", ") {
			if v != "" {
				all = append(all, v)
			}
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// span returns the first start and the last end. The end is zero if any run has none.
func span(parts []Part) (started, finished time.Time) {
	for i, p := range parts {
		if i == 0 || p.Run.Started.Before(started) {
			started = p.Run.Started
		}
		if p.Run.Finished.After(finished) {
			finished = p.Run.Finished
		}
	}
	if slices.ContainsFunc(parts, func(p Part) bool { return p.Run.Finished.IsZero() }) {
		finished = time.Time{}
	}
	return started, finished
}

// result is a cell in one run.
type result struct {
	dir  string
	cell Cell
}

// gravity orders states from the weakest to the strongest.
var gravity = []Status{Skipped, Pass, NotMeasured, Fail, Errored}

func (r result) compare(other result) int {
	return cmp.Compare(slices.Index(gravity, r.cell.Status), slices.Index(gravity, other.cell.Status))
}

// contradictions compares the results of one cell with the first result. A cell without
// a key was required and not built, and contradicts nothing.
func contradictions(results []result) (errs []error) {
	var first, made *result // the first result, and the first one with artifacts
	for i, r := range results {
		switch {
		case r.cell.Key == "":
			continue
		case first == nil:
			first = &results[i]
		case r.cell.Key != first.cell.Key:
			errs = append(errs, diag.Errorf(diag.Drift, "%s has the key %s in %s and %s in %s", r.cell.ID, first.cell.Key, first.dir, r.cell.Key, r.dir).
				WithHint("merge runs of one commit: these had different recipes, locks or releases of builder"))
			continue // other inputs give other bytes
		}
		switch bytes := digests(r.cell); {
		case len(bytes) == 0:
		case made == nil:
			made = &results[i]
		case !slices.Equal(digests(made.cell), bytes):
			errs = append(errs, diag.Errorf(diag.Gate, "%s has different bytes in %s and in %s: %s, and %s", r.cell.ID, made.dir, r.dir,
				strings.Join(digests(made.cell), " "), strings.Join(bytes, " ")).
				WithHint("both have the same key: find the difference with `builder verify --rebuild`"))
		}
	}
	return errs
}

// digests lists the names and digests of a cell's artifacts.
func digests(c Cell) []string {
	var all []string
	for _, a := range c.Artifacts {
		all = append(all, fmt.Sprintf("%s sha256:%s", a.Name, a.SHA256))
	}
	slices.Sort(all)
	return all
}
