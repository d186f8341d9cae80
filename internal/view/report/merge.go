package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"builder/internal/base/diag"
	"builder/internal/files/artifact"
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
	run, err := Read(filepath.Join(dir, "run.json"))
	return opened(dir, run, err)
}

// opened returns the part for a run read from a directory.
func opened(dir string, run Run, err error) (Part, error) {
	path := filepath.Join(dir, "run.json")
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

// Merge joins runs into one. The order of the runs does not matter, and the cells are
// sorted by id. For a cell in several runs the worst result counts; a skipped result
// counts least. expected lists the required cells: a missing one becomes skipped. Runs
// with different keys or different bytes for the same cell are an error that lists
// every contradiction.
func Merge(parts []Part, expected []Cell) (Run, error) {
	merged := Run{Schema: Schema, Cells: []Cell{}}
	testimonies := map[string][]testimony{}
	for _, p := range parts {
		for _, cell := range p.Run.Cells {
			testimonies[cell.ID] = append(testimonies[cell.ID], testimony{p.Dir, settled(cell)})
		}
	}
	for _, cell := range expected {
		if len(testimonies[cell.ID]) == 0 {
			testimonies[cell.ID] = []testimony{{cell: settled(cell)}}
		}
	}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(testimonies)) {
		errs = append(errs, contradictions(testimonies[id])...)
		merged.Cells = append(merged.Cells, slices.MaxFunc(testimonies[id], testimony.compare).cell)
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
	killed := false
	for i, p := range parts {
		if i == 0 || p.Run.Started.Before(started) {
			started = p.Run.Started
		}
		if p.Run.Finished.After(finished) {
			finished = p.Run.Finished
		}
		killed = killed || p.Run.Finished.IsZero()
	}
	if killed {
		return started, time.Time{}
	}
	return started, finished
}

// testimony is a cell in one run.
type testimony struct {
	dir  string
	cell Cell
}

// gravity orders states from the weakest to the strongest.
var gravity = []Status{Skipped, Pass, NotMeasured, Fail, Errored}

// origins orders the origins of a cell from the weakest to the strongest.
var origins = []From{"", Store, Registry, Build}

// compare orders the results of one cell; the last one counts. Results of equal state
// and origin are ordered by their bytes, so that the order of the runs does not matter.
func (t testimony) compare(u testimony) int {
	return cmp.Or(
		cmp.Compare(slices.Index(gravity, t.cell.Status), slices.Index(gravity, u.cell.Status)),
		cmp.Compare(slices.Index(origins, t.cell.From), slices.Index(origins, u.cell.From)),
		bytes.Compare(t.bytes(), u.bytes()),
	)
}

func (t testimony) bytes() []byte {
	text, _ := json.Marshal(t.cell) // a cell always encodes
	return text
}

// contradictions compares the results of one cell with the first result. A cell without
// a key was required and not built, and contradicts nothing.
func contradictions(testimonies []testimony) (errs []error) {
	testimonies = slices.DeleteFunc(slices.Clone(testimonies), func(t testimony) bool { return t.cell.Key == "" })
	if len(testimonies) == 0 {
		return nil
	}
	first := testimonies[0]
	made := slices.IndexFunc(testimonies, func(t testimony) bool { return len(t.cell.Artifacts) > 0 })
	for i, t := range testimonies[1:] {
		if t.cell.Key != first.cell.Key {
			errs = append(errs, diag.Errorf(diag.Drift, "%s has the key %s in %s and %s in %s", t.cell.ID, first.cell.Key, first.dir, t.cell.Key, t.dir).
				WithHint("merge runs of one commit: these had different recipes, locks or releases of builder"))
			continue // other inputs give other bytes
		}
		if i+1 > made && made >= 0 && len(t.cell.Artifacts) > 0 && !slices.Equal(digests(testimonies[made].cell), digests(t.cell)) {
			errs = append(errs, diag.Errorf(diag.Gate, "%s has different bytes in %s and in %s: %s, and %s", t.cell.ID, testimonies[made].dir, t.dir,
				strings.Join(digests(testimonies[made].cell), " "), strings.Join(digests(t.cell), " ")).
				WithHint("both have the same key: find the difference with `builder verify --rebuild`"))
		}
	}
	return errs
}

// digests lists the names and digests of a cell's artifacts.
func digests(c Cell) []string {
	var all []string
	for _, a := range c.Artifacts {
		all = append(all, digest(a))
	}
	slices.Sort(all)
	return all
}

func digest(a artifact.Artifact) string { return fmt.Sprintf("%s sha256:%s", a.Name, a.SHA256) }
