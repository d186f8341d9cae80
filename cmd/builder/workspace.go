package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"builder/internal/app/assemble"
	"builder/internal/app/catalogue"
	"builder/internal/base/diag"
	"builder/internal/build/fetch"
	"builder/internal/build/results"
	"builder/internal/build/run"
	"builder/internal/evidence/signing"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
	"builder/internal/publishing/reuse"
)

// workspace is what one invocation works with.
type workspace struct {
	options
	store   *store.Store
	results *results.Results
	engines []*engine
	scratch string
	note    func(string, ...any)
	uv      func(context.Context) (uvTool, error)
	close   func() // lets the store be collected again
}

func openWorkspace(ctx context.Context, o options, note func(string, ...any)) (*workspace, error) {
	s, err := store.Open(filepath.Join(o.home, "store"))
	if err != nil {
		return nil, err
	}
	scratch := filepath.Join(o.home, "scratch")
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return nil, fmt.Errorf("opening the state directory: %w", err)
	}
	release, err := s.Hold(ctx, func() { note("the store is being collected: waiting for it") })
	if err != nil {
		return nil, err
	}
	w := &workspace{options: o, store: s, results: results.New(s).Sealed(sealing(o.home, note)), scratch: scratch, note: note, close: release}
	w.uv = w.uvOnce()
	for _, choice := range o.engines {
		w.engines = append(w.engines, &engine{engineChoice: choice, opts: o, store: s, scratch: scratch, note: note, uv: w.uv})
	}
	return w, nil
}

// finder looks for results here, and where --from says.
func (w *workspace) finder(trust signing.Trust) run.Finder {
	return reuse.Finder{Results: w.results, Places: w.from, Trust: trust, Only: w.fromOnly, Store: w.store, Scratch: w.scratch, Note: w.note}
}

func (w *workspace) fetcher() *fetch.Fetcher {
	return &fetch.Fetcher{
		Store: w.store, Scratch: w.scratch, Mirrors: w.mirrors, Snapshot: w.snapshot,
		Overrides: w.overrides, Offline: w.offline, UV: w.uv,
	}
}

// holdOut waits until no other run writes to the directory of the results: two
// would take each other's wheels away.
func (w *workspace) holdOut(ctx context.Context) (free func(), err error) {
	if err := os.MkdirAll(w.out, 0o755); err != nil {
		return nil, diag.Errorf(diag.Usage, "--out: %w", err)
	}
	return store.Lock(ctx, filepath.Join(w.out, ".lock"), func() {
		w.note("another run writes to %s: waiting for it (--out DIR names another place)", w.out)
	})
}

// entries turns the command line into locked entries: those of the chosen cells,
// and before them those of the cells that go into them.
func (w *workspace) entries(ctx context.Context, cat catalogue.Catalogue) ([]lock.Entry, error) {
	drafts, _, err := assemble.Choose(cat, w.recipe, w.filter)
	if err != nil {
		return nil, err
	}
	host := once(func(ctx context.Context) (bool, error) { return true, w.ready(ctx, nil) })
	entries, err := w.assembler(cat, func(ctx context.Context) error { _, err := host(ctx); return err }).Entries(ctx, w.recipe, w.filter, drafts)
	if err != nil {
		return nil, err
	}
	if err := unusedOverrides(w.overrides, entries); err != nil {
		return nil, err
	}
	known := func(e lock.Entry) bool { return w.results.Has(e.Key()) && !w.rebuild } // a rebuild takes the inputs anew
	return assemble.Needed(entries, len(drafts), known), nil
}

// assembler makes entries of what the locks pin.
func assembler(cat catalogue.Catalogue, o options) *assemble.Assembler {
	a := &assemble.Assembler{Locks: cat.Locks(o.home), Revision: revision()}
	switch {
	case o.locked:
		a.Forbids = "--locked"
	case o.offline:
		a.Forbids = "--offline"
	}
	return a
}

// assembler makes entries; where a lock lacks something it is resolved.
// Before is asked first.
func (w *workspace) assembler(cat catalogue.Catalogue, before func(context.Context) error) *assemble.Assembler {
	a := assembler(cat, w.options)
	a.Resolve = func(ctx context.Context, recipe string, missing lock.Missing) (lock.File, error) {
		if err := before(ctx); err != nil {
			return lock.File{}, err
		}
		w.note("resolving what the lock of %s lacks: %s", recipe, missing)
		pins, err := w.resolver().Resolve(ctx, recipe, missing)
		if err != nil {
			return lock.File{}, err
		}
		done, err := a.Locks.Update(recipe, catalogue.Update{Pins: pins})
		if done.Wrote {
			w.note("wrote %s", done.Path)
		}
		return done.After, err
	}
	return a
}

func (w *workspace) resolver() lock.Resolver {
	return lock.Resolver{Scratch: w.scratch, Mirrors: w.mirrors, Overrides: w.overrides, UV: w.uv, Now: time.Now}
}

// once calls f at most once and remembers what came of it, unless the context
// ended: a later caller may have a better one.
func once[T any](f func(context.Context) (T, error)) func(context.Context) (T, error) {
	var mu sync.Mutex
	var value T
	var err error
	done := false
	return func(ctx context.Context) (T, error) {
		mu.Lock()
		defer mu.Unlock()
		if !done {
			value, err = f(ctx)
			done = ctx.Err() == nil
		}
		return value, err
	}
}
