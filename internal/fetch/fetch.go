// Package fetch brings everything that a locked entry names into the store: the
// one phase of a build that has a network. It takes only what the lock names,
// and nothing enters the store whose size and sha256 are not the lock's.
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
	"sync"
	"sync/atomic"

	"builder/internal/deb"
	"builder/internal/diag"
	"builder/internal/git"
	"builder/internal/lock"
	"builder/internal/pypi"
	"builder/internal/store"
)

// Fetcher knows where files may be had.
type Fetcher struct {
	Store     *store.Store
	Scratch   string
	Mirrors   []string            // base addresses of the Debian archive, in the order of trial
	Snapshot  string              // base address of a Debian snapshot archive, or ""
	Overrides map[string][]string // source name (project or package) to other places, tried first
	Offline   bool                // only the store
	UV        func(context.Context) (pypi.Tool, error)
}

// parallel is how many files are fetched at a time: enough to hide latency, few
// enough to stay polite.
const parallel = 6

// want is one blob and what is known of its places.
type want struct {
	name string // as --set source.NAME
	blob store.Blob
	from []store.Source
}

// A Counter is a writer of progress that wants to know of every byte too.
type Counter interface {
	// Bytes is told how many bytes of all have come. Done falls back where a
	// transfer has to start over.
	Bytes(done, total int64)
}

// Fetch brings what e names into the store, and writes to progress how far it has
// come; that may be a [Counter]. Every file that could not be had is
// reported, not only the first.
func (f *Fetcher) Fetch(ctx context.Context, e lock.Entry, progress io.Writer) error {
	wants := f.absent(append(f.debs(e.Image.Pin), f.debs(e.Runtime.Pin)...), progress)
	python, err := f.python(ctx, e, progress)
	if err != nil {
		return err
	}
	wants = append(wants, python...)
	source, err := f.source(ctx, e, progress)
	if err != nil {
		return err
	}
	defer os.RemoveAll(source.scratch)
	wants = append(wants, f.absent(source.wants, progress)...)
	if len(wants) == 0 {
		fmt.Fprintln(progress, "everything is in the store")
		return nil
	}
	if f.Offline {
		return offlineFault(wants)
	}
	return f.all(ctx, wants, progress)
}

// Blobs returns every file that entries name, each once.
func Blobs(entries ...lock.Entry) []store.Blob {
	var all []store.Blob
	seen := map[string]bool{}
	add := func(b store.Blob) {
		if !seen[b.SHA256] {
			seen[b.SHA256] = true
			all = append(all, b)
		}
	}
	for _, e := range entries {
		for _, image := range []lock.Image{e.Image, e.Runtime} {
			for _, p := range image.Pin.Packages {
				add(p.Blob())
			}
			for _, file := range image.Wheels {
				add(file.Blob())
			}
		}
		if e.Source.SHA256 != "" { // a stack has no source
			add(e.Source.Blob())
		}
	}
	return all
}

// Missing is nil if the store has every file that entries name, and else an error
// for each that it lacks.
func (f *Fetcher) Missing(entries []lock.Entry, progress io.Writer) error {
	var wants []want
	for _, b := range Blobs(entries...) {
		wants = append(wants, want{blob: b})
	}
	return offlineFault(f.absent(wants, progress))
}

// absent leaves out what the store holds and what is named twice. Of a damaged
// file it is said why it has to come again.
func (f *Fetcher) absent(wants []want, progress io.Writer) []want {
	var out []want
	seen := map[string]bool{}
	for _, w := range wants {
		if seen[w.blob.SHA256] {
			continue
		}
		_, err := f.Store.Use(w.blob)
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintln(progress, err)
		}
		seen[w.blob.SHA256] = true
		out = append(out, w)
	}
	return out
}

func (f *Fetcher) debs(pin lock.ImagePin) []want {
	var wants []want
	for _, p := range pin.Packages {
		urls := deb.URLs(f.Mirrors, f.Snapshot, pin.Date, p)
		wants = append(wants, want{p.Name, p.Blob(), f.places(p.Name, urls)})
	}
	return wants
}

// python asks uv where the index keeps the files that are absent; addresses live
// in memory only.
func (f *Fetcher) python(ctx context.Context, e lock.Entry, progress io.Writer) ([]want, error) {
	files := slices.Concat(e.Image.Wheels, e.Runtime.Wheels)
	if e.Source.Commit == "" && e.Source.Path == "" && e.Source.SHA256 != "" {
		files = append([]pypi.File{e.Source.File}, files...)
	}
	var wants []want
	byDigest := map[string]pypi.File{}
	for _, file := range files {
		wants = append(wants, want{file.Project, file.Blob(), f.places(file.Project, nil)})
		byDigest[file.SHA256] = file
	}
	wants = f.absent(wants, progress)
	var unknown []pypi.File
	for _, w := range wants {
		if len(w.from) == 0 {
			unknown = append(unknown, byDigest[w.blob.SHA256])
		}
	}
	if len(unknown) == 0 || f.Offline {
		return wants, nil
	}
	uv, err := f.UV(ctx)
	if err != nil {
		return nil, err
	}
	urls, err := uv.Locate(ctx, f.Scratch, unknown)
	if err != nil {
		return nil, err
	}
	for i, w := range wants {
		if url, ok := urls[w.blob.SHA256]; ok {
			wants[i].from = []store.Source{url}
		}
	}
	return wants, nil
}

// made is a source that is not a file of the Python index. What had to be made
// on this host lies in scratch until it is in the store.
type made struct {
	wants   []want
	scratch string
}

// source finds a source in the pool of a Debian archive, or makes the archive of
// a commit.
func (f *Fetcher) source(ctx context.Context, e lock.Entry, progress io.Writer) (made, error) {
	s := e.Source
	switch {
	case s.Path != "":
		urls := deb.URLs(f.Mirrors, f.Snapshot, e.Image.Pin.Date, deb.Package{Path: s.Path})
		return made{wants: []want{{s.Project, s.Blob(), f.places(s.Project, urls)}}}, nil
	case s.Commit == "":
		return made{}, nil
	}
	if f.Offline || len(f.absent([]want{{blob: s.Blob()}}, progress)) == 0 {
		return made{wants: []want{{s.Project, s.Blob(), nil}}}, nil
	}
	from := git.Repository(s.Repository)
	for _, place := range f.Overrides[s.Project] {
		info, err := os.Stat(place)
		if err != nil || !info.IsDir() {
			return made{wants: []want{{s.Project, s.Blob(), f.places(s.Project, nil)}}}, nil
		}
		from = git.Repository(place)
	}
	dir, err := os.MkdirTemp(f.Scratch, "source-*")
	if err != nil {
		return made{}, err
	}
	m := made{scratch: dir}
	file := filepath.Join(dir, s.Filename)
	if _, err := git.Make(ctx, f.Scratch, from, s.Commit, s.Folder(), file); err != nil {
		os.RemoveAll(dir)
		return made{}, fmt.Errorf("source %s: %w", s.Project, err)
	}
	m.wants = []want{{s.Project, s.Blob(), []store.Source{store.Source(file)}}}
	return m, nil
}

// places are the user's own for this name, then the others.
func (f *Fetcher) places(name string, urls []string) []store.Source {
	var from []store.Source
	for _, place := range append(append([]string{}, f.Overrides[name]...), urls...) {
		from = append(from, store.Source(place))
	}
	return from
}

func offlineFault(wants []want) error {
	var faults []error
	for _, w := range wants {
		faults = append(faults, diag.Errorf(diag.Fetch, "%s (sha256 %s) is not in the store, and --offline was given", w.blob.Name, w.blob.SHA256))
	}
	return errors.Join(faults...)
}

// all fetches several files at a time and writes what has come so far. When ctx
// ends, it says so once and not for every file.
func (f *Fetcher) all(ctx context.Context, wants []want, progress io.Writer) error {
	meter := newMeter(wants, progress)
	faults := make([]error, len(wants))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, w := range wants {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			_, faults[i] = f.Store.Fetch(ctx, w.blob, w.from, meter.file())
			meter.arrived(faults[i])
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("fetching %d files: %w", len(wants), context.Cause(ctx))
	}
	return errors.Join(faults...)
}

// meter adds up the bytes of all files.
type meter struct {
	mu      sync.Mutex
	out     io.Writer
	counter Counter
	done    atomic.Int64
	total   int64
	files   int
	all     int
	share   int64 // in hundredths, as it was written last
}

// uncounted is for a writer that counts nothing.
type uncounted struct{}

func (uncounted) Bytes(int64, int64) {}

func newMeter(wants []want, out io.Writer) *meter {
	m := &meter{out: out, all: len(wants), counter: uncounted{}}
	if counter, ok := out.(Counter); ok {
		m.counter = counter
	}
	for _, w := range wants {
		m.total += w.blob.Size
	}
	return m
}

// file returns the progress callback of one file.
func (m *meter) file() func(done, total int64) {
	var last int64
	return func(done, _ int64) {
		m.done.Add(done - last)
		last = done
		m.show()
	}
}

// show writes a line for each further hundredth of the bytes.
func (m *meter) show() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counter.Bytes(m.done.Load(), m.total)
	if share := m.done.Load() * 100 / max(m.total, 1); share != m.share {
		m.share = share
		m.line()
	}
}

func (m *meter) line() {
	fmt.Fprintf(m.out, "%d of %d MB, %d of %d files\n", m.done.Load()/1e6, m.total/1e6, m.files, m.all)
}

// arrived counts a file, or writes why it did not come.
func (m *meter) arrived(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		fmt.Fprintln(m.out, err)
		return
	}
	if m.files++; m.files == m.all {
		m.line()
	}
}
