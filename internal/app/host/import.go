package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"builder/internal/app/home"
	"builder/internal/build/carry"
	"builder/internal/build/fetch"
	"builder/internal/input/store"
	"builder/internal/plan/assemble"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
)

// Import reads the files exported by another machine and reports the state of each
// imported cell on this machine. On an error it still returns everything it imported,
// and joins all errors.
func Import(ctx context.Context, s Setup, paths []string) (Imported, error) {
	w, err := s.Open(ctx)
	if err != nil {
		return Imported{}, err
	}
	defer w.Close()
	t := &importer{Setup: s, Workspace: w, ctx: ctx}
	var errs []error
	for _, path := range paths {
		if _, err := carry.Read(path, t); err != nil {
			errs = append(errs, err)
		}
	}
	t.listCells()
	return t.Imported, errors.Join(errs...)
}

// Imported counts the imported files.
type Imported struct {
	Files int            `json:"files"`
	Bytes int64          `json:"bytes"`
	Known int            `json:"known"` // files already in the store
	Cells []ImportedCell `json:"cells"`
}

// An ImportedCell is an imported cell and its state on this machine.
type ImportedCell struct {
	ID    string `json:"id"`
	Key   string `json:"key"`
	State string `json:"state"`
}

// importer puts the exported files into the store.
type importer struct {
	Setup
	*home.Workspace
	ctx context.Context
	Imported
	entries []lock.Entry
}

var _ carry.Taker = (*importer)(nil)

// Entry implements [carry.Taker]. An entry of another builder version is no error of
// the file: the cell's state reports it.
func (t *importer) Entry(id, key string, data []byte) error {
	e, err := lock.ParseEntry(data)
	if err != nil || e.Key() != key || e.ID != id {
		t.Cells = append(t.Cells, ImportedCell{id, key, "another version of builder wrote its entry, and this one makes a different entry"})
		return nil
	}
	t.entries = append(t.entries, e)
	return nil
}

// Blob implements [carry.Taker].
func (t *importer) Blob(b store.Blob, r io.Reader) error {
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	added, err := t.Store.Receive(b, r)
	switch {
	case err != nil:
		return err
	case added:
		t.Files++
		t.Bytes += b.Size
	default:
		t.Known++
	}
	return nil
}

// listCells appends the state of each imported cell.
func (t *importer) listCells() {
	asm := t.Sources.Assembler(t.Catalogue, t.Keys.Home)
	for _, e := range assemble.OneOfEach(t.entries) {
		t.Cells = append(t.Cells, ImportedCell{e.ID, e.Key(), t.state(asm, e)})
	}
	t.Cells = append([]ImportedCell{}, t.Cells...) // an empty list in JSON, not null
}

// state compares an entry with the entry that this builder makes for the same cell. If
// they differ, run would look for other files.
func (t *importer) state(asm *assemble.Assembler, e lock.Entry) string {
	made, err := asm.Input(t.ctx, recipe.Input{Recipe: e.Recipe, Axes: matrix.Filter(e.Axes)})
	switch {
	case err != nil:
		return fmt.Sprintf("this builder cannot make it: %v", err)
	case made[len(made)-1].Key() != e.Key():
		return "this builder makes a different entry: use the same version, recipes and locks on both machines"
	case t.Results.Has(e.Key()):
		return "the result is in the store"
	}
	files := 0
	for _, b := range fetch.Blobs(e) {
		if _, ok := t.Store.Path(b); !ok {
			files++
		}
	}
	var lacks []string
	if files > 0 {
		lacks = append(lacks, fmt.Sprintf("%d files are missing", files))
	}
	for _, pin := range e.Pulled() {
		if !HasImage(t.Setup, pin.Digest) {
			lacks = append(lacks, fmt.Sprintf("the engine must have or pull image %s: it is not in the store", pin.Reference()))
		}
	}
	if programs := t.Programs.Missing(); len(programs) > 0 {
		lacks = append(lacks, strings.Join(programs, " and ")+" must be fetched: the store does not hold a copy")
	}
	if len(lacks) > 0 {
		return strings.Join(lacks, "; ")
	}
	return "can be built without a network"
}
