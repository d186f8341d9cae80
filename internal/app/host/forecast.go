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

// forecast returns the requirements of the first chosen cell, and the images that it and
// its input cells are built and run in. Nobody knows the images of a cell that the lock
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
	needs := &doctor.Needs{Name: of.Recipe.Name, Cell: cell.ID}
	if cuda := cell.Axes["cuda"]; cuda != "none" {
		needs.CUDA = cuda
	}
	return needs, imagesOf(entries), nil
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
