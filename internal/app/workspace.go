package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"builder/internal/app/assemble"
	"builder/internal/app/catalogue"
	"builder/internal/build/fetch"
	"builder/internal/build/results"
	"builder/internal/input/pypi"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
)

// A workspace is a session with an open store.
type workspace struct {
	*Session
	store   *store.Store
	results *results.Results
	engines []*engine
	scratch string
	uv      func(context.Context) (pypi.Tool, error)
	close   func() // allows collecting the store again
}

func (s *Session) open(ctx context.Context) (*workspace, error) {
	kept, err := store.Open(filepath.Join(s.Home, "store"))
	if err != nil {
		return nil, err
	}
	scratch := filepath.Join(s.Home, "scratch")
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, fmt.Errorf("opening the state directory: %w", err)
	}
	release, err := kept.Hold(ctx, func() { s.Note("the store is being collected: waiting for it") })
	if err != nil {
		return nil, err
	}
	w := &workspace{Session: s, store: kept, results: s.Results(kept), scratch: scratch, close: release}
	w.uv = once(func(ctx context.Context) (pypi.Tool, error) {
		return pypi.EnsureUV(ctx, s.Home, s.Note, s.pypiOptions(kept))
	})
	for _, choice := range s.Choices {
		w.engines = append(w.engines, &engine{EngineChoice: choice, Session: s, store: kept, scratch: scratch, uv: w.uv})
	}
	return w, nil
}

// Results returns the results in a store, verified and signed with this home's key.
func (s *Session) Results(kept *store.Store) *results.Results {
	return results.New(kept).Sealed(s.sealing())
}

// pypiOptions returns the options for installing the programs used by builds.
func (s *Session) pypiOptions(kept *store.Store) pypi.Options {
	return pypi.Options{NoInstall: s.Native.NoInstall, Offline: s.Offline, Store: kept}
}

func (w *workspace) fetcher() *fetch.Fetcher {
	return &fetch.Fetcher{
		Store: w.store, Scratch: w.scratch, Mirrors: w.Mirrors, Snapshot: w.Snapshot,
		Overrides: w.Places(), Offline: w.Offline, UV: w.uv,
	}
}

// entries returns the locked entries of the chosen cells, preceded by those of their
// input cells. known reports which results already exist.
func (w *workspace) entries(ctx context.Context, of Selection, known func(lock.Entry) bool) ([]lock.Entry, error) {
	drafts, _, err := w.choose(of)
	if err != nil {
		return nil, err
	}
	host := once(func(ctx context.Context) (bool, error) { return true, w.ready(ctx, nil) })
	entries, err := w.resolving(func(ctx context.Context) error { _, err := host(ctx); return err }).Entries(ctx, of.Recipe, of.Filter, drafts)
	if err != nil {
		return nil, err
	}
	if err := unusedOverrides(w.Overrides, entries); err != nil {
		return nil, err
	}
	return assemble.Needed(entries, len(drafts), known), nil
}

// resolving returns an assembler that resolves pins missing from a lock. It calls
// before first.
func (w *workspace) resolving(before func(context.Context) error) *assemble.Assembler {
	a := w.Assembler()
	a.Resolve = func(ctx context.Context, recipe string, missing lock.Missing) (lock.File, error) {
		if err := before(ctx); err != nil {
			return lock.File{}, err
		}
		w.Note("resolving the missing pins of the lock of %s: %s", recipe, missing)
		pins, err := w.resolver().Resolve(ctx, recipe, missing)
		if err != nil {
			return lock.File{}, err
		}
		done, err := a.Locks.Update(recipe, catalogue.Update{Pins: pins})
		if done.Wrote {
			w.Note("wrote %s", done.Path)
		}
		return done.After, err
	}
	return a
}

func (w *workspace) resolver() lock.Resolver {
	return lock.Resolver{Scratch: w.scratch, Mirrors: w.Mirrors, Registries: w.Registries, Overrides: w.Places(), UV: w.uv, Now: time.Now}
}

// once calls f at most once and remembers the result. If the context ended it does not
// remember it: a later caller may have a live context.
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
