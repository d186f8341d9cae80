package plan

import (
	"context"
	"slices"

	"builder/internal/plan/assemble"
	"builder/internal/plan/ci"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
)

// Drafts drafts the cells of a selection.
func Drafts(ctx context.Context, s Setup, of Selection) ([]lock.Draft, error) {
	cells, _, err := matrix.Expand(of.Recipe, of.Filter)
	if err == nil && of.Unproven {
		cells, err = unproven(ctx, s, of, cells)
	}
	if err != nil {
		return nil, err
	}
	return assemble.Draft(s.Catalogue, of.Recipe, cells)
}

// unproven returns few of the cells, which hold the values that no proven cell of today's
// inputs holds.
func unproven(ctx context.Context, s Setup, of Selection, cells []matrix.Cell) ([]matrix.Cell, error) {
	done, err := s.Catalogue.Proven()
	if err != nil {
		return nil, err
	}
	recorded := slices.DeleteFunc(slices.Clone(cells), func(c matrix.Cell) bool { return !done.Standing(c.ID, "").Built })
	explained, err := explainCells(ctx, s, of, recorded)
	if err != nil {
		return nil, err
	}
	current := map[string]bool{}
	for _, c := range explained {
		current[c.ID] = c.Proven.Current
	}
	return ci.CondenseCells(s.Catalogue, cells, current)
}
