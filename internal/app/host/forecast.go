package host

import (
	"context"
	"slices"

	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/machine/doctor"
	"builder/internal/plan/assemble"
	"builder/internal/plan/lock"
)

// forecast returns the requirements of the first chosen cell and its input cells, and the
// images that they are built and run in. Nobody knows the images of a cell that the lock
// does not pin.
func forecast(ctx context.Context, s Setup, of plan.Selection) (*doctor.Needs, []lock.ImagePin, error) {
	drafts, err := assemble.Choose(s.Catalogue, of.Recipe, of.Filter)
	if err != nil {
		return nil, nil, err
	}
	asm := s.Sources.Assembler(s.Catalogue, s.Keys.Home)
	asm.Forbids = "--offline" // no network access here
	entries, err := asm.Entries(ctx, of.Recipe, of.Filter, drafts[:1])
	if err != nil && diag.Worst(err) != diag.Drift {
		return nil, nil, err
	}
	cell := drafts[0].Cell
	needs := &doctor.Needs{Name: of.Recipe.Name, Cell: cell.ID, Memory: max(needsOf(entries).Memory, drafts[0].Memory)}
	if cuda := cell.Axes["cuda"]; cuda != "none" {
		needs.CUDA = cuda
	}
	return needs, imagesOf(entries), nil
}

// needsOf returns the last of several entries with the memory of the largest.
func needsOf(entries []lock.Entry) *doctor.Needs {
	needs := &doctor.Needs{}
	for _, e := range entries {
		needs.Name, needs.Cell, needs.Memory = e.Recipe, e.ID, max(needs.Memory, e.Memory)
	}
	return needs
}

// imagesOf returns the images of entries that an engine pulls, each once.
func imagesOf(entries []lock.Entry) (images []lock.ImagePin) {
	for _, e := range entries {
		for _, pin := range e.Pulled() {
			if !slices.ContainsFunc(images, func(p lock.ImagePin) bool { return p.Reference() == pin.Reference() }) {
				images = append(images, pin)
			}
		}
	}
	return images
}
