package build

import (
	"context"
	"fmt"
	"io"
	"slices"

	"builder/internal/app/home"
	"builder/internal/build/fetch"
	"builder/internal/build/run"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
)

// A sparingFetcher frees disk space before it fetches the files of a cell. The cells of a
// covering run share few files: each release of a framework brings 3 GB, and ten times that
// in the engine's cache. An interrupted run leaves as much to the next.
type sparingFetcher struct {
	run.Fetcher
	workspace *home.Workspace
	prune     func(context.Context) error // makes the engine collect its cache
	offline   bool                        // nothing can be fetched again
	left      []lock.Entry                // whose files are still needed
	fetched   []lock.Entry
}

// Fetch implements [run.Fetcher]. It must not run beside a build.
func (f *sparingFetcher) Fetch(ctx context.Context, e lock.Entry, progress io.Writer) error {
	if err := f.makeRoom(ctx); err != nil {
		fmt.Fprintf(progress, "making room: %v\n", err) // the disk may have room all the same
	}
	f.fetched = append(f.fetched, e)
	f.left = slices.DeleteFunc(f.left, func(other lock.Entry) bool { return other.ID == e.ID })
	return f.Fetcher.Fetch(ctx, e, progress)
}

// makeRoom lets the engine collect, and removes the files of earlier cells that no later
// cell needs and that can be fetched again. The engine comes first: its start may still use
// the store.
func (f *sparingFetcher) makeRoom(ctx context.Context) error {
	if err := f.prune(ctx); err != nil || f.offline {
		return err
	}
	needed := fetch.Blobs(f.left...)
	unneeded := slices.DeleteFunc(fetch.Blobs(f.fetched...), func(b store.Blob) bool { return slices.Contains(needed, b) })
	return f.workspace.Drop(ctx, unneeded)
}
