package app

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/app/assemble"
	"builder/internal/base/diag"
	"builder/internal/build/fetch"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
)

// refusal returns the error with which run would end before it builds anything: the lock
// lacks a pin and --locked or --offline forbids resolving it, no locked cell reads a
// source of --set, or the store lacks a file and --offline forbids fetching it.
func (s *Session) refusal(ctx context.Context, of Selection) error {
	if !s.Locked && !s.Offline && len(s.Overrides) == 0 {
		return nil
	}
	drafts, _, err := s.choose(of)
	if err != nil {
		return err
	}
	entries, err := s.Assembler().Entries(ctx, of.Recipe, of.Filter, drafts)
	if err != nil && !s.Locked && !s.Offline { // run resolves missing pins
		return nil
	}
	if err == nil {
		err = unusedOverrides(s.Overrides, entries)
	}
	if err != nil || !s.Offline {
		return err
	}
	known, err := s.knownResults()
	if err != nil {
		return err
	}
	have := func(e lock.Entry) bool { return known(e.Key()) }
	kept := store.Peek(filepath.Join(s.Home, "store"))
	var errs []error
	for _, e := range assemble.Needed(entries, len(drafts), have) {
		if !have(e) {
			errs = append(errs, lackingFiles(e, kept))
		}
	}
	return errors.Join(errs...)
}

// lackingFiles returns an error with the names of an entry's files missing from the
// store.
func lackingFiles(e lock.Entry, kept *store.Store) error {
	var names []string
	for _, b := range fetch.Blobs(e) {
		if _, here := kept.Path(b); !here {
			names = append(names, b.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	shown := names[:min(len(names), 3)]
	if len(names) > len(shown) {
		shown = append(slices.Clone(shown), "…")
	}
	return diag.Errorf(diag.Fetch, "%s: --offline, and the store lacks %d files: %s", e.ID, len(names), strings.Join(shown, ", ")).
		WithHint("leave out --offline, or copy them with `builder store export` on another host and `builder store import` here")
}
