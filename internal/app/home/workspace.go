package home

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"builder/internal/build/results"
	"builder/internal/evidence/signing"
	"builder/internal/input/pypi"
	"builder/internal/input/store"
)

// A Workspace is the store of a home, held open: nobody collects it until Close.
type Workspace struct {
	Store    *store.Store
	Results  *results.Results
	Scratch  string
	Programs Programs
	Close    func()
}

// Open opens the store of a home. With noInstall it never installs host packages.
func Open(ctx context.Context, keys signing.Keys, noInstall bool) (*Workspace, error) {
	kept, err := store.Open(StoreDir(keys.Home))
	if err != nil {
		return nil, err
	}
	scratch := filepath.Join(keys.Home, "scratch")
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, fmt.Errorf("opening the state directory: %w", err)
	}
	release, err := kept.Hold(ctx, func() { keys.Note("the store is being collected: waiting for it") })
	if err != nil {
		return nil, err
	}
	options := pypi.Options{NoInstall: noInstall, Offline: keys.Offline, Store: kept}
	return &Workspace{
		Store: kept, Results: results.Signed(kept, keys), Scratch: scratch, Close: release,
		Programs: Programs{home: keys.Home, note: keys.Note, options: options, uv: &onceUV{}},
	}, nil
}

// StoreDir returns the directory of the store of a home.
func StoreDir(home string) string { return filepath.Join(home, "store") }

// Programs installs the programs that builds use into a home.
type Programs struct {
	home    string
	note    func(format string, args ...any)
	options pypi.Options
	uv      *onceUV
}

// UV installs uv, at the first call.
func (p Programs) UV(ctx context.Context) (pypi.Tool, error) {
	p.uv.Lock()
	defer p.uv.Unlock()
	if !p.uv.asked {
		p.uv.tool, p.uv.err = pypi.EnsureUV(ctx, p.home, p.note, p.options)
		p.uv.asked = ctx.Err() == nil // a later caller may have a live context
	}
	return p.uv.tool, p.uv.err
}

// Bubblewrap installs bubblewrap and returns its directory.
func (p Programs) Bubblewrap(ctx context.Context) (string, error) {
	return pypi.EnsureBubblewrap(ctx, p.home, p.note, p.options)
}

// Ccache installs the compiler cache and returns its path.
func (p Programs) Ccache(ctx context.Context) (string, error) {
	return pypi.EnsureCcache(ctx, p.home, p.note, p.options)
}

// Missing returns the programs that neither the home nor its store has.
func (p Programs) Missing() []string { return pypi.Missing(p.home, p.options) }

// onceUV remembers the answer of the first installation.
type onceUV struct {
	sync.Mutex
	asked bool
	tool  pypi.Tool
	err   error
}

// Open opens a file of the store.
func (w *Workspace) Open(b store.Blob) (io.ReadCloser, error) {
	path, err := w.Store.Use(b)
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// NoteWriter prints each line as a note.
type NoteWriter func(string, ...any)

func (n NoteWriter) Write(line []byte) (int, error) {
	n("%s", strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}
