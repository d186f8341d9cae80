package host

import (
	"context"
	"slices"
	"strings"

	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/build/fetch"
	"builder/internal/machine/doctor"
	"builder/internal/plan/assemble"
	"builder/internal/plan/lock"
)

// forecast returns the requirements of the first chosen cell and its input cells, and the
// images that they are built and run in. Nobody knows those of a cell that the lock does
// not pin.
func forecast(ctx context.Context, s Setup, of plan.Selection) (*doctor.Needs, []lock.ImagePin, error) {
	drafts, err := assemble.Choose(s.Catalogue, of.Recipe, of.Filter)
	if err != nil {
		return nil, nil, err
	}
	d := drafts[0]
	asm := s.Sources.Assembler(s.Catalogue, s.Keys.Home)
	asm.Forbids = "--offline" // no network access here
	entries, err := asm.Entries(ctx, of.Recipe, of.Filter, drafts[:1])
	if err != nil && diag.Worst(err) != diag.Drift {
		return nil, nil, err
	}
	needs := needsOf(s, entries)
	if err != nil {
		needs.Unpinned, _, _ = strings.Cut(err.Error(), "\n")
		needs.Pin = asm.Locks.PinCommand(of.Recipe.Name, of.Filter)
	}
	needs.Name, needs.Cell, needs.Memory = of.Recipe.Name, d.Cell.ID, max(needs.Memory, d.Memory)
	if cuda := d.Cell.Axes["cuda"]; cuda != "none" {
		needs.CUDA = cuda
	}
	return needs, imagesOf(entries), nil
}

// needsOf adds up the memory of entries, and their files that the store lacks.
func needsOf(s Setup, entries []lock.Entry) *doctor.Needs {
	needs, kept := &doctor.Needs{}, peek(s.Keys.Home)
	for _, b := range fetch.Blobs(entries...) {
		if _, here := kept.Path(b); !here {
			needs.Fetch += b.Size
		}
	}
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
