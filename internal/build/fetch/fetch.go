// Package fetch brings everything that a locked entry names into the store: the
// one phase of a build that has a network. It takes only what the lock names,
// and nothing enters the store whose size and sha256 are not the lock's. What a
// name means today is never asked here, but in internal/plan/lock.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sourcegraph/conc/pool"

	"builder/internal/base/diag"
	"builder/internal/input/deb"
	"builder/internal/input/git"
	"builder/internal/input/pypi"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
)

// Fetcher knows where files may be had.
type Fetcher struct {
	Store     *store.Store
	Scratch   string
	Mirrors   []string            // base addresses of the Debian archive, in the order of trial
	Snapshot  string              // base address of a Debian snapshot archive, or ""
	Overrides map[string][]string // source name (project or package) to other places, tried first
	Offline   bool                // only the store
	Tests     bool                // upstream's tests and what they need too
	UV        func(context.Context) (pypi.Tool, error)
}

// parallel is how many files are fetched at a time: enough to hide latency, few
// enough to stay polite.
const parallel = 6

// A want is one file that an entry names, and what is known of its places. One of
// pool, file and source says where others than the user keep it.
type want struct {
	name   string // as --set source.NAME
	blob   store.Blob
	pool   string         // path in the pool of a Debian archive
	date   string         // of that pool
	file   pypi.File      // of the Python index
	source lock.SourcePin // whose archive is made of a commit
	from   []store.Place
}

// wants lists every file that an entry names, some of them twice, those of upstream's
// tests where they are asked for.
func wants(e lock.Entry, tests bool) []want {
	var all []want
	for _, img := range []lock.Image{e.Image, e.Runtime} {
		for _, p := range img.Pin.Packages {
			all = append(all, want{name: p.Name, blob: p.Blob(), pool: p.Path, date: img.Pin.Date})
		}
		for _, file := range img.Wheels {
			all = append(all, want{name: file.Project, blob: file.Blob(), file: file})
		}
	}
	if tests && e.Tests.SHA256 != "" {
		for _, file := range e.TestWheels {
			all = append(all, want{name: file.Project, blob: file.Blob(), file: file})
		}
		all = append(all, want{name: e.Tests.Project, blob: e.Tests.Blob(), source: e.Tests})
	}
	source := want{name: e.Source.Project, blob: e.Source.Blob()}
	switch e.Source.Kind() {
	case recipe.Cells:
		return all
	case recipe.Archive:
		source.pool, source.date = e.Source.Path, e.Image.Pin.Date
	case recipe.Git:
		source.source = e.Source
	case recipe.Sdist, recipe.Wheel:
		source.file = e.Source.File
	}
	return append(all, source)
}

// Blobs returns every file that the builds of entries read, each once.
func Blobs(entries ...lock.Entry) []store.Blob {
	var all []store.Blob
	seen := map[string]bool{}
	for _, e := range entries {
		for _, w := range wants(e, false) {
			if !seen[w.blob.SHA256] {
				seen[w.blob.SHA256] = true
				all = append(all, w.blob)
			}
		}
	}
	return all
}

// Missing is nil if the store has every file that entries name, and else an error
// for each that it lacks.
func (f *Fetcher) Missing(entries []lock.Entry, progress io.Writer) error {
	var all []want
	for _, e := range entries {
		all = append(all, wants(e, f.Tests)...)
	}
	return offlineFault(f.absent(all, progress))
}

// Fetch brings what e names into the store, and writes to progress how far it has
// come; that may be a [Counter]. Every file that could not be had is
// reported, not only the first.
func (f *Fetcher) Fetch(ctx context.Context, e lock.Entry, progress io.Writer) error {
	absent := f.absent(wants(e, f.Tests), progress)
	if len(absent) == 0 {
		fmt.Fprintln(progress, "everything is in the store")
		return nil
	}
	if f.Offline {
		return offlineFault(absent)
	}
	f.place(absent)
	if err := f.locate(ctx, absent); err != nil {
		return err
	}
	scratch, err := f.make(ctx, absent)
	defer os.RemoveAll(scratch)
	if err != nil {
		return err
	}
	return f.all(ctx, absent, progress)
}

// absent leaves out what the store holds and what is named twice. Of a damaged
// file it is said why it has to come again.
func (f *Fetcher) absent(all []want, progress io.Writer) []want {
	var out []want
	seen := map[store.Blob]bool{}
	for _, w := range all {
		if seen[w.blob] {
			continue
		}
		_, err := f.Store.Use(w.blob)
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintln(progress, err)
		}
		seen[w.blob] = true
		out = append(out, w)
	}
	return out
}

func offlineFault(all []want) error {
	var faults []error
	for _, w := range all {
		faults = append(faults, diag.Errorf(diag.Fetch, "%s (sha256 %s) is not in the store, and --offline was given", w.blob.Name, w.blob.SHA256))
	}
	return errors.Join(faults...)
}

// place notes the places that are known without a question: the user's own, then
// the pools.
func (f *Fetcher) place(all []want) {
	for i, w := range all {
		urls := f.Overrides[w.name]
		if w.pool != "" {
			urls = append(slices.Clone(urls), deb.URLs(f.Mirrors, f.Snapshot, w.date, w.pool)...)
		}
		for _, url := range urls {
			all[i].from = append(all[i].from, store.Place(url))
		}
	}
}

// locate asks uv where the index keeps the files that nothing is known of;
// addresses live in memory only.
func (f *Fetcher) locate(ctx context.Context, all []want) error {
	var unknown []pypi.File
	for _, w := range all {
		if w.file.SHA256 != "" && len(w.from) == 0 {
			unknown = append(unknown, w.file)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	uv, err := f.UV(ctx)
	if err != nil {
		return err
	}
	urls, err := uv.Locate(ctx, f.Scratch, unknown)
	if err != nil {
		return err
	}
	for i, w := range all {
		if url, ok := urls[w.blob.SHA256]; ok {
			all[i].from = []store.Place{url}
		}
	}
	return nil
}

// make makes the archives of commits on this host, in a directory that the caller
// removes, unless the user has the archive itself.
func (f *Fetcher) make(ctx context.Context, all []want) (scratch string, err error) {
	if !slices.ContainsFunc(all, func(w want) bool { return w.source.Commit != "" }) {
		return "", nil
	}
	scratch, err = os.MkdirTemp(f.Scratch, "source-*")
	if err != nil {
		return "", err
	}
	for i, w := range all {
		if w.source.Commit == "" {
			continue
		}
		place, err := f.archive(ctx, scratch, w)
		if err != nil {
			return scratch, fmt.Errorf("source %s: %w", w.name, err)
		}
		if place != "" {
			all[i].from = []store.Place{store.Place(place)}
		}
	}
	return scratch, nil
}

// archive makes the archive of a commit in a directory, and returns its path, or
// nothing where the user has the archive.
func (f *Fetcher) archive(ctx context.Context, dir string, w want) (string, error) {
	file := filepath.Join(dir, w.source.Filename)
	from := git.Repository(w.source.Repository)
	places := f.Overrides[w.name]
	switch {
	case slices.ContainsFunc(places, isArchive):
		return "", nil
	case len(places) > 0:
		from = git.Repository(places[0]) // as where names are resolved
	}
	_, err := git.Make(ctx, f.Scratch, from, w.source.Tree(), file)
	return file, err
}

// isArchive reports whether a place of the user's for a source is no repository.
func isArchive(place string) bool {
	info, err := os.Stat(place)
	return err != nil || !info.IsDir()
}

// all fetches several files at a time and writes what has come so far. When ctx
// ends, it says so once and not for every file.
func (f *Fetcher) all(ctx context.Context, wants []want, progress io.Writer) error {
	meter := newMeter(wants, progress)
	errs := make([]error, len(wants))
	fetches := pool.New().WithMaxGoroutines(parallel)
	for i, w := range wants {
		fetches.Go(func() {
			if ctx.Err() != nil {
				return
			}
			_, errs[i] = f.Store.Fetch(ctx, w.blob, w.from, meter.file())
			meter.arrived(errs[i])
		})
	}
	fetches.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("fetching %d files: %w", len(wants), context.Cause(ctx))
	}
	return errors.Join(errs...)
}
