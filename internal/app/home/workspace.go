// Package home is the state directory of a user: its place, and its store with the programs
// that builds use.
package home

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"builder/internal/base/diag"
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
	Programs pypi.Programs
	release  func()
}

// Close ends the hold of the store.
func (w *Workspace) Close() { w.release() }

// Drop removes files from the store, and the links to its files in the scratch directory,
// which keep their space. It removes nothing while another process uses the store.
func (w *Workspace) Drop(ctx context.Context, files []store.Blob) error {
	w.release()
	release, err := w.Store.TryAlone()
	if release != nil {
		_, links := store.Unstage(w.Scratch, false)
		err = errors.Join(err, w.Store.Drop(files), links)
		release()
	}
	var err2 error
	w.release, err2 = w.Store.Hold(ctx, nil)
	if err2 != nil {
		w.release = func() {}
	}
	return errors.Join(err, err2)
}

// Open opens the store of a home. With noInstall it never installs host packages.
func Open(ctx context.Context, keys signing.Keys, noInstall bool) (*Workspace, error) {
	if keys.Home == Nowhere {
		return nil, diag.Errorf(diag.Usage, "no state directory: neither $BUILDER_HOME, $XDG_CACHE_HOME nor $HOME are set").WithHint("set BUILDER_HOME")
	}
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
	return &Workspace{
		Store: kept, Results: results.Signed(kept, keys), Scratch: scratch, release: release,
		Programs: pypi.Programs{Home: keys.Home, Note: keys.Note, NoInstall: noInstall, Offline: keys.Offline, Store: kept},
	}, nil
}

// StoreDir returns the directory of the store of a home.
func StoreDir(home string) string { return filepath.Join(home, "store") }

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
