// Package fetch brings every file named by a locked entry into the store. It is the
// only phase of a build with a network. It fetches only locked files, and a file enters
// the store only with the size and sha256 of the lock. Names are resolved in
// internal/plan/lock, never here.
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
	"strings"

	"github.com/sourcegraph/conc/pool"

	"builder/internal/base/diag"
	"builder/internal/input/deb"
	"builder/internal/input/git"
	"builder/internal/input/pypi"
	"builder/internal/input/store"
	"builder/internal/plan/image"
	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
)

// Fetcher fetches the files of entries from mirrors, Python indexes and git.
type Fetcher struct {
	Store     *store.Store
	Scratch   string
	Mirrors   func() []string     // base addresses of the Debian archive, in the order to try
	Snapshot  string              // base address of a Debian snapshot archive, or ""
	Maven     func() []string     // base addresses of Maven repositories, in the order to try
	Overrides map[string][]string // source name (project or package) to the user's places, tried first
	Offline   bool                // use only the store
	Tests     bool                // fetch upstream's tests and their dependencies too
	UV        func(context.Context) (pypi.Tool, error)
}

// parallel is the number of files fetched at a time. It hides latency without straining
// the servers.
const parallel = 6

// A want is one file named by an entry, with its known places. At most one of pool,
// cpython, file and source is set; it names the public place.
type want struct {
	name    string // the NAME of --set source.NAME
	blob    store.Blob
	pool    string // path in the pool of a Debian archive
	date    string // snapshot date of that pool
	cpython *image.CPython
	file    pypi.File      // file of the Python index
	source  lock.SourcePin // commit to make the archive from
	from    []store.Place
}

// wants lists every file of an entry, with duplicates. Files of upstream's tests are
// included if tests is set.
func wants(e lock.Entry, tests bool) []want {
	var all []want
	for _, img := range []lock.Image{e.Image, e.Runtime} {
		for _, p := range img.Pin.Packages {
			all = append(all, want{name: p.Name, blob: p.Blob(), pool: p.Path, date: img.Pin.Date})
		}
		if c := img.CPython; c != nil {
			all = append(all, want{name: "cpython", blob: c.Blob(), cpython: c})
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
	case recipe.Archive:
		source.pool, source.date = e.Source.Path, e.Image.Pin.Date
	case recipe.Git:
		source.source = e.Source
	case recipe.Sdist, recipe.Wheel:
		source.file = e.Source.File
	}
	return append(all, source)
}

// Blobs returns the files that building entries needs, each once.
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

// Missing returns an error for each file of entries missing from the store, or nil.
func (f *Fetcher) Missing(entries []lock.Entry, progress io.Writer) error {
	var all []want
	for _, e := range entries {
		all = append(all, wants(e, f.Tests)...)
	}
	return offlineFault(f.absent(all, progress))
}

// Fetch brings the files of e into the store and writes its progress to progress.
// It reports every file that failed, not only the first.
func (f *Fetcher) Fetch(ctx context.Context, e lock.Entry, progress io.Writer) error {
	absent := f.absent(wants(e, f.Tests), progress)
	if len(absent) == 0 {
		fmt.Fprintln(progress, "all files are in the store")
		return nil
	}
	if f.Offline {
		return offlineFault(absent)
	}
	return f.bring(ctx, absent, progress)
}

// bring brings absent files into the store, several at a time, from places that it finds
// for each. If ctx ends, it returns one error and not one for each file.
func (f *Fetcher) bring(ctx context.Context, absent []want, progress io.Writer) error {
	if err := f.place(ctx, absent); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(f.Scratch, "source-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if err := f.make(ctx, absent, scratch); err != nil {
		return err
	}
	meter := newMeter(absent, progress)
	errs := make([]error, len(absent))
	fetches := pool.New().WithMaxGoroutines(parallel)
	for i, w := range absent {
		fetches.Go(func() {
			if ctx.Err() != nil {
				return
			}
			_, err := f.Store.Fetch(ctx, w.blob, w.from, meter.file())
			errs[i] = named(err, w.name)
			meter.arrived(errs[i])
		})
	}
	fetches.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("fetching %d files: %w", len(absent), context.Cause(ctx))
	}
	return errors.Join(errs...)
}

// Source brings one source into the store and returns its path there. It asks only the
// user's places, never the public one.
func (f *Fetcher) Source(ctx context.Context, pin lock.SourcePin, progress io.Writer) (string, error) {
	if err := pin.Check(); err != nil { // the entry can be unsigned
		return "", diag.Errorf(diag.Usage, "the entry's source of tests: %w", err)
	}
	absent := f.absent([]want{{name: pin.Project, blob: pin.Blob(), source: pin}}, progress)
	if len(absent) > 0 && len(f.Overrides[pin.Project]) == 0 {
		return "", fmt.Errorf("source %s: %w", pin.Project, fs.ErrNotExist)
	}
	if len(absent) > 0 {
		if err := f.bring(ctx, absent, progress); err != nil {
			return "", err
		}
	}
	path, _ := f.Store.Path(pin.Blob())
	return path, nil
}

// absent returns the wants missing from the store, without duplicates. It prints why a
// damaged file is fetched again.
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

// maxNamed bounds the files named in one error. An empty store lacks hundreds.
const maxNamed = 5

func offlineFault(all []want) error {
	if len(all) == 0 {
		return nil
	}
	var names []string
	for _, w := range all[:min(len(all), maxNamed)] {
		names = append(names, w.blob.Name)
	}
	if more := len(all) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	fault := diag.Errorf(diag.Fetch, "%s (sha256 %s) is not in the store, and --offline was given", names[0], all[0].blob.SHA256)
	if len(all) > 1 {
		fault = diag.Errorf(diag.Fetch, "%d files are not in the store, and --offline was given: %s", len(all), strings.Join(names, ", "))
	}
	return fault.WithHint("run once without --offline, or copy the inputs with `builder store export` and `builder store import`")
}

// place sets the places of files: the user's own, then the Debian pools and the places of
// a CPython. It asks uv for the addresses of index files without such a place, which are
// not saved.
func (f *Fetcher) place(ctx context.Context, all []want) error {
	var unknown []pypi.File
	for i, w := range all {
		urls := f.Overrides[w.name]
		if w.pool != "" {
			urls = append(slices.Clone(urls), deb.URLs(f.Mirrors(), f.Snapshot, w.date, w.pool)...)
		}
		if w.cpython != nil {
			urls = append(slices.Clone(urls), w.cpython.URLs(f.Maven())...)
		}
		for _, url := range urls {
			all[i].from = append(all[i].from, store.Place(url))
		}
		if w.file.SHA256 != "" && len(all[i].from) == 0 {
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

// make makes the archives of commits in a directory of this host, unless the user supplies
// the archive.
func (f *Fetcher) make(ctx context.Context, all []want, dir string) error {
	for i, w := range all {
		places := f.Overrides[w.name]
		if w.source.Commit == "" || slices.ContainsFunc(places, isArchive) {
			continue
		}
		file := filepath.Join(dir, w.source.Filename)
		from, err := git.Source(w.source.Repository, places)
		if err == nil {
			_, err = git.Make(ctx, f.Scratch, from, w.source.Tree(), file)
		}
		if err != nil {
			return fmt.Errorf("source %s: %w", w.name, named(err, w.name))
		}
		all[i].from = []store.Place{store.Place(file)}
	}
	return nil
}

// isArchive reports whether the user's place for a source is an archive and not a
// repository.
func isArchive(place string) bool {
	info, err := os.Stat(place)
	return err != nil || !info.IsDir()
}

// named writes the name of a source into hints about --set.
func named(err error, name string) error {
	if err == nil {
		return nil
	}
	all := diag.All(err)
	for _, e := range all {
		e.Hint = strings.ReplaceAll(e.Hint, "source.NAME", "source."+name)
	}
	return diag.Joined(all)
}
