package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/publishing/index"
)

// Promote puts a published cell into another channel if its signed statements allow it.
// It builds nothing and changes no byte.
//
// already reports that the channel had the cell before.
func Promote(ctx context.Context, at Catalogue, cell string, channel attest.Policy, trust signing.Trust) (receipt Receipt, already bool, err error) {
	r, err := at.Find(ctx, cell)
	if err != nil {
		return Receipt{}, false, err
	}
	scratch, err := os.MkdirTemp("", "builder-promote-*")
	if err != nil {
		return Receipt{}, false, err
	}
	defer os.RemoveAll(scratch)
	b, err := Take(ctx, at, r.Key, scratch, trust, channel)
	if err == nil && b.Entry.ID != cell && b.Entry.Key() != cell {
		err = fmt.Errorf("the destination names it %s, but the signed entry names it %s", cell, b.Entry.ID)
	}
	if err != nil && diag.CodeOf(err) != diag.Gate {
		failed := diag.Errorf(diag.Publish, "promoting %s: %w", r.Cell, err)
		switch {
		case errors.Is(err, index.ErrYanked):
			failed = failed.WithHint("`builder publish yank %s --at %s --undo` removes the mark", r.Cell, at)
		case errors.Is(err, artifact.ErrChanged), errors.Is(err, regular.ErrLarger), errors.Is(err, fs.ErrNotExist):
			failed = failed.WithHint("publish the cell again from the host that built it: `builder publish` replaces a damaged or missing file")
		}
		err = failed
	}
	if err != nil {
		return Receipt{}, false, err
	}
	receipt, err = at.Put(ctx, b, string(channel), nil)
	return receipt, slices.Contains(r.Channels, string(channel)), err
}

// YankCell marks a published cell as not to be used. An empty because removes the mark.
func YankCell(ctx context.Context, place Directory, cell, because string) (index.Record, error) {
	found, err := place.Find(ctx, cell)
	if err != nil {
		return index.Record{}, err
	}
	r, err := place.Yank(ctx, found.Key, because)
	if err != nil {
		err = fmt.Errorf("yanking %s: %w", cell, err)
	}
	return r, err
}
