// Package fetch brings everything that a locked entry names into the store: the
// one phase of a build that has a network. It takes only what the lock names,
// and nothing enters the store whose size and sha256 are not the lock's.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"builder/internal/deb"
	"builder/internal/diag"
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

// Fetch brings what e names into the store. Every file that could not be had is
// reported, not only the first.
func (f *Fetcher) Fetch(ctx context.Context, e lock.Entry, progress io.Writer) error {
	wants := f.absent(append(f.debs(e.Image.Pin), f.debs(e.Runtime.Pin)...))
	python, err := f.python(ctx, e)
	if err != nil {
		return err
	}
	wants = append(wants, python...)
	if len(wants) == 0 {
		fmt.Fprintln(progress, "everything is in the store")
		return nil
	}
	if f.Offline {
		return offlineFault(wants)
	}
	return f.all(ctx, wants, progress)
}

// absent leaves out what the store holds and what is named twice.
func (f *Fetcher) absent(wants []want) []want {
	var out []want
	seen := map[string]bool{}
	for _, w := range wants {
		if _, ok := f.Store.Path(w.blob); ok || seen[w.blob.SHA256] {
			continue
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
func (f *Fetcher) python(ctx context.Context, e lock.Entry) ([]want, error) {
	files := append([]pypi.File{e.Source}, e.Image.Wheels...)
	files = append(files, e.Runtime.Wheels...)
	var wants []want
	byDigest := map[string]pypi.File{}
	for _, file := range files {
		wants = append(wants, want{file.Project, file.Blob(), f.places(file.Project, nil)})
		byDigest[file.SHA256] = file
	}
	wants = f.absent(wants)
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

// all fetches several files at a time and writes what has come so far.
func (f *Fetcher) all(ctx context.Context, wants []want, progress io.Writer) error {
	meter := newMeter(wants, progress)
	faults := make([]error, len(wants))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, w := range wants {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			_, faults[i] = f.Store.Fetch(ctx, w.blob, w.from, meter.file())
			meter.arrived(w.blob.Name, faults[i])
		})
	}
	wg.Wait()
	return errors.Join(faults...)
}

// meter adds up the bytes of all files.
type meter struct {
	mu     sync.Mutex
	out    io.Writer
	done   atomic.Int64
	total  int64
	files  int
	all    int
	tenths int64
}

func newMeter(wants []want, out io.Writer) *meter {
	m := &meter{out: out, all: len(wants)}
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
	done := m.done.Load()
	m.mu.Lock()
	defer m.mu.Unlock()
	if share := done * 100 / max(m.total, 1); share != m.tenths {
		m.tenths = share
		fmt.Fprintf(m.out, "%d of %d MB, %d of %d files\n", done/1e6, m.total/1e6, m.files, m.all)
	}
}

func (m *meter) arrived(name string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files++
	if err != nil {
		fmt.Fprintf(m.out, "%s: %v\n", name, err)
	}
}
