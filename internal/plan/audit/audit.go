// Package audit checks every patch over the whole matrix of its recipe: whether it is
// still needed and applies to some cell. If the source of a cell is available, audit applies
// the patches to it. If not, the result is [patch.NotMeasured], never a success.
package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"builder/internal/plan/matrix"
	"builder/internal/plan/patch"
	"builder/internal/plan/sourcetree"
)

// A Cell holds the properties of a cell used by an audit.
type Cell struct {
	Version string            // of the distribution
	Facts   map[string]string // axes and facts of the image
	Source  string            // digest of its source, or "" if the lock does not pin it
}

// A Row is the audit result of one patch.
type Row struct {
	Patch  string                 `json:"patch"`
	Cells  int                    `json:"cells"`  // cells to which the patch applies
	Of     int                    `json:"of"`     // all cells
	States map[string]patch.State `json:"states"` // keyed by version of the distribution
}

// Unseen reports whether the patch applies to cells but the source of none of their
// versions was available, so its effect is unknown.
func (r Row) Unseen() bool {
	states := slices.Collect(maps.Values(r.States))
	seen := func(s patch.State) bool { return s == patch.Applied || s == patch.AppliedAtOffset || s == patch.Failed }
	return slices.Contains(states, patch.NotMeasured) && !slices.ContainsFunc(states, seen)
}

// A Finding is a problem in the catalogue of patches.
type Finding struct {
	Patch   string `json:"patch"`
	Problem string `json:"problem"`
	Remedy  string `json:"remedy"`
}

func (f Finding) String() string { return f.Patch + ": " + f.Problem }

// A Report is the result of an audit. Rows are in the order of the patches. Findings
// are sorted.
type Report struct {
	Rows     []Row     `json:"patches"`
	Findings []Finding `json:"findings"`
}

// Open returns the source tree with the given digest, or nil if it is not available.
// Run calls it again for each use, because patching changes a tree.
type Open func(source string) (*sourcetree.Tree, error)

// Run audits the patches of one distribution over all of its cells.
func Run(ctx context.Context, patches []patch.Patch, cells []Cell, open Open) (Report, error) {
	a := &auditor{ctx: ctx, patches: patches, cells: cells, open: open, seen: map[string]bool{}}
	for i := range patches {
		a.rows = append(a.rows, Row{Patch: patches[i].Name, Of: len(cells), States: map[string]patch.State{}})
	}
	series := a.choose()
	a.unused()
	for _, key := range slices.Sorted(maps.Keys(series)) {
		if err := a.series(series[key]); err != nil {
			return Report{}, err
		}
	}
	slices.SortFunc(a.findings, func(x, y Finding) int { return strings.Compare(x.String(), y.String()) })
	return Report{a.rows, a.findings}, nil
}

type auditor struct {
	ctx      context.Context
	patches  []patch.Patch
	cells    []Cell
	open     Open
	rows     []Row
	findings []Finding
	seen     map[string]bool
}

// found adds a finding once.
func (a *auditor) found(name, remedy, format string, args ...any) {
	f := Finding{Patch: name, Problem: fmt.Sprintf(format, args...), Remedy: remedy}
	if !a.seen[f.String()] {
		a.seen[f.String()] = true
		a.findings = append(a.findings, f)
	}
}

// set is a selection of patches for cells of one source.
type set struct {
	version string
	source  string
	facts   map[string]string // of the last such cell; link targets differ between cells
	chosen  []int             // indexes of patches
}

// choose selects the patches of every cell and counts the cells of each patch. Cells
// with the same source and the same selection share one set, so it is applied once.
func (a *auditor) choose() map[string]*set {
	sets := map[string]*set{}
	for _, c := range a.cells {
		s := &set{version: c.Version, source: c.Source, facts: c.Facts}
		for i, p := range a.patches {
			choice, err := patch.Choose(p, c.Facts)
			if err != nil { // a fact that neither an axis nor the image states
				a.found(p.Name, "state it in provides of the images, or drop the condition", "%v", err)
				continue
			}
			if choice.Applies {
				s.chosen = append(s.chosen, i)
				a.rows[i].Cells++
				continue
			}
			a.state(i, c.Version, choice.State)
		}
		sets[fmt.Sprint(s.version, " ", s.source, " ", s.chosen)] = s
	}
	return sets
}

// state records the state of a patch for a version. A result seen on a tree outranks
// one derived from conditions, and a failure outranks a success.
func (a *auditor) state(i int, v string, s patch.State) {
	if rank(s) > rank(a.rows[i].States[v]) {
		a.rows[i].States[v] = s
	}
}

func rank(s patch.State) int {
	return slices.Index([]patch.State{"", patch.NotNeeded, patch.AlreadyUpstream, patch.NotMeasured, patch.Applied, patch.AppliedAtOffset, patch.Failed}, s)
}

// unused finds patches selected for no cell.
func (a *auditor) unused() {
	for i, p := range a.patches {
		if a.rows[i].Cells > 0 || len(a.cells) == 0 {
			continue
		}
		merged := 0
		for _, s := range a.rows[i].States {
			if s == patch.AlreadyUpstream {
				merged++
			}
		}
		if p.Merged != "" && merged == len(a.rows[i].States) && merged > 0 {
			a.found(p.Name, "delete the patch", "is merged upstream (%s) in every version of the catalogue", p.Merged)
			continue
		}
		a.found(p.Name, "delete the patch, or correct its condition", "applies to no cell: %s never holds", matrix.Words(p.When))
	}
}

// series applies one selection of patches to its source, in order.
func (a *auditor) series(s *set) error {
	var tree *sourcetree.Tree
	if s.source != "" {
		var err error
		if tree, err = a.open(s.source); err != nil {
			return err
		}
	}
	for _, i := range s.chosen {
		if tree == nil {
			a.state(i, s.version, patch.NotMeasured)
			continue
		}
		a.apply(i, s, tree)
	}
	return nil
}

// apply applies one patch to a tree.
func (a *auditor) apply(i int, s *set, tree *sourcetree.Tree) {
	p := a.patches[i]
	result, err := patch.Apply(a.ctx, tree, p, s.facts)
	switch {
	case err == nil:
		a.state(i, s.version, result.State)
	case patch.IsUpstream(err):
		a.state(i, s.version, patch.Failed)
		a.found(p.Name, "narrow the range", "version %s already contains it: %v", s.version, err)
	default:
		a.state(i, s.version, patch.Failed)
		a.found(p.Name, "correct the edit, or narrow the range", "does not apply to version %s: %v", s.version, err)
	}
}
