package host

import (
	"context"
	"errors"
	"slices"
	"strings"

	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/build/fetch"
	"builder/internal/input/oci"
	"builder/internal/input/store"
	"builder/internal/machine/doctor"
	"builder/internal/plan/assemble"
	"builder/internal/plan/lock"
)

// A forecast holds the requirements of cells, and the images that an engine has to pull.
type forecast struct {
	doctor.Needs
	images []image
}

// An image is to be pulled by an engine.
type image struct {
	name     string // with its digest, if the lock has one
	registry string // the address to ask
	held     bool   // by the store or by an engine, or nobody knows
}

// A forecaster adds up requirements. It knows what is still to be fetched.
type forecaster struct {
	home    string
	store   *store.Store
	sources plan.Sources
	held    func(digest string) bool // whether the engine has an image; nil is unknown
}

func forecastOf(s Setup, held func(digest string) bool) forecaster {
	return forecaster{s.Keys.Home, peek(s.Keys.Home), s.Sources, held}
}

// ofChosen returns the requirements of the first chosen cell and its input cells. Files
// in the store need no fetch, and images held by the engine need no pull.
func (h forecaster) ofChosen(ctx context.Context, asm *assemble.Assembler, of plan.Selection) (*forecast, error) {
	r, chosen := of.Recipe, of.Filter
	drafts, err := assemble.Choose(asm.Locks.Catalogue, r, chosen)
	if err != nil {
		return nil, err
	}
	d := drafts[0]
	needs := &forecast{Needs: doctor.Needs{Name: r.Name, Cell: d.Cell.ID, Memory: d.Memory}}
	if cuda := d.Cell.Axes["cuda"]; cuda != "none" {
		needs.CUDA = cuda
	}
	entries, err := asm.Entries(ctx, r, chosen, drafts[:1])
	switch {
	case diag.Worst(err) == diag.Drift:
		needs.Unpinned, _, _ = strings.Cut(err.Error(), "\n")
		needs.Pin = asm.Locks.PinCommand(r.Name, chosen)
		err = errors.Join(h.addImage(needs, d.Image.Registry, d.Image.Digest), h.addImage(needs, d.Runtime.Registry, d.Runtime.Digest))
	case err == nil:
		err = h.addEntries(needs, entries)
	}
	return needs, err
}

// ofEntries returns the combined requirements of entries.
func (h forecaster) ofEntries(entries []lock.Entry) (*forecast, error) {
	last := entries[len(entries)-1]
	needs := &forecast{Needs: doctor.Needs{Name: last.Recipe, Cell: last.ID}}
	return needs, h.addEntries(needs, entries)
}

// addEntries adds up the files of entries, and adds their images.
func (h forecaster) addEntries(needs *forecast, entries []lock.Entry) error {
	for _, b := range fetch.Blobs(entries...) {
		if _, here := h.store.Path(b); !here {
			needs.Fetch += b.Size
		}
	}
	for _, e := range entries {
		needs.Memory = max(needs.Memory, e.Memory)
		for _, pin := range e.Pulled() {
			if err := h.addImage(needs, pin.Registry, pin.Digest); err != nil {
				return err
			}
		}
	}
	return nil
}

// addImage adds an image with the address of its registry or its mirror; "" is none.
func (h forecaster) addImage(needs *forecast, reference, digest string) error {
	if reference == "" {
		return nil
	}
	registry, err := oci.Endpoint(h.sources.Registries.Reference(reference))
	if err != nil {
		return err
	}
	name := reference
	if digest != "" {
		name += "@" + digest
	}
	one := image{name, registry, h.held == nil || h.held(digest) || stored(h.home, digest)}
	if !slices.Contains(needs.images, one) {
		needs.images = append(needs.images, one)
	}
	return nil
}
