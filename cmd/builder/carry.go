package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app/assemble"
	"builder/internal/app/catalogue"
	"builder/internal/base/diag"
	"builder/internal/build/carry"
	"builder/internal/build/fetch"
	"builder/internal/build/results"
	"builder/internal/build/run"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/input/pypi"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/internal/publishing/publish"
	"builder/internal/publishing/reuse"
)

func exportCommand(cat catalogue.Catalogue, fault error, out printer) *cli.Command {
	return &cli.Command{
		Name: "export", Usage: "write all that the chosen cells need where there is no network", ArgsUsage: "RECIPE [axes]",
		Description: "What the store lacks is fetched first. On the other machine, with the same\nbuilder, recipes and locks: `builder store import`, then\n`builder run RECIPE --offline --locked`.",
		Flags:       []cli.Flag{recipesFlag()}, OnUsageError: verbUsageError, HideHelpCommand: true,
		Action: unknownRecipe(cat, fault),
		Subcommands: recipeCommands(cat, fault, exportFlags(), func(c *cli.Context, o options) error {
			e := export{to: c.String("to"), noResults: c.Bool("no-results"), without: c.StringSlice("without")}
			return e.do(c.Context, cat, o, out)
		}),
	}
}

func exportFlags() []cli.Flag {
	return append(selectionFlags(), noInstallFlag(),
		&cli.StringFlag{Name: "to", Usage: "write a tar file where `FILE|DIR` ends in .tar, a directory else; it must not exist"},
		&cli.BoolFlag{Name: "no-results", Usage: "leave out what the cells made, only take what they are made of"},
		&cli.StringSliceFlag{Name: "without", Usage: "leave out `images|uv` (uv: also bubblewrap), which the other machine has already; repeatable"},
	)
}

// export is what is to be carried, and where.
type export struct {
	to        string
	noResults bool
	without   []string
}

func (x export) fault() error {
	for _, what := range x.without {
		if what != "images" && what != "uv" {
			return diag.Errorf(diag.Usage, "--without: %q is not images or uv", what).WithHint("%s", diag.DidYouMean(what, []string{"images", "uv"}))
		}
	}
	switch filepath.Ext(x.to) {
	case ".gz", ".tgz", ".xz", ".zst", ".bz2", ".zip":
		return diag.Errorf(diag.Usage, "--to: %s: what is carried is compressed already", x.to).WithHint("name a file that ends in .tar, or a directory")
	}
	return absentPath(x.to)
}

// do writes what the chosen cells need, and those that go into them.
func (x export) do(ctx context.Context, cat catalogue.Catalogue, o options, out printer) error {
	if err := x.fault(); err != nil {
		return err
	}
	drafts, _, err := assemble.Choose(cat, o.recipe, o.filter)
	if err != nil {
		return err
	}
	w, err := openWorkspace(ctx, o, out.note)
	if err != nil {
		return err
	}
	defer w.close()
	builds := func(context.Context) error { return nil } // not here: the host need not be able to
	entries, err := w.assembler(cat, builds).Entries(ctx, o.recipe, o.filter, drafts)
	if err != nil {
		return err
	}
	if err := errors.Join(unusedOverrides(o.overrides, entries), x.images(entries, out)); err != nil {
		return err
	}
	load, err := x.gather(ctx, w, entries)
	if err != nil {
		return err
	}
	index, err := carry.Write(x.to, load)
	if err != nil {
		return err
	}
	return x.print(index, o.json, out)
}

// images names the images that only an engine can keep: there is no file of them
// in the store.
func (x export) images(entries []lock.Entry, out printer) error {
	cells := map[string][]string{}
	for _, e := range entries {
		for _, pin := range []lock.ImagePin{e.Image.Pin, e.Runtime.Pin} {
			name := pin.Registry + "@" + pin.Digest
			if pin.Registry != "" && !slices.Contains(cells[name], e.ID) {
				cells[name] = append(cells[name], e.ID)
			}
		}
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(cells)) {
		if slices.Contains(x.without, "images") {
			out.note("not carried: image %s", name)
			continue
		}
		faults = append(faults, diag.Errorf(diag.Fetch, "image %s of %s cannot be carried: the engine keeps it, not the store", name, strings.Join(cells[name], ", ")).
			WithHint("where the engine of the other machine has the image or reaches a registry that does: --without images"))
	}
	return errors.Join(faults...)
}

// gather brings what the store lacks and says what is to be carried.
func (x export) gather(ctx context.Context, w *workspace, entries []lock.Entry) (carry.Load, error) {
	load := carry.Load{Builder: version, Entries: entries, Blobs: fetch.Blobs(entries...), Results: map[string][]byte{}, Open: w.open}
	if err := w.bring(ctx, entries, &load, x.without); err != nil {
		return load, err
	}
	for _, e := range entries {
		record, artifacts, ok := w.results.Carry(e)
		if ok && !x.noResults {
			load.Results[e.Key()] = record
			load.Blobs = append(load.Blobs, artifacts...)
		}
	}
	return load, nil
}

// bring fetches what entries name, uv and bubblewrap. Offline it says all that is
// not there.
func (w *workspace) bring(ctx context.Context, entries []lock.Entry, load *carry.Load, without []string) error {
	log := noteWriter(w.note)
	var faults []error
	if w.offline {
		faults = append(faults, w.fetcher().Missing(entries, log))
	} else {
		for _, e := range entries {
			if err := w.fetcher().Fetch(ctx, e, log); err != nil {
				faults = append(faults, fmt.Errorf("cell %s: %w", e.ID, err))
			}
		}
	}
	if !slices.Contains(without, "uv") {
		programs, err := w.programs(ctx)
		faults = append(faults, err)
		load.Blobs = append(load.Blobs, programs...)
	}
	return errors.Join(faults...)
}

// programs puts the wheels of uv and bubblewrap into the store. The other machine
// installs them from there.
func (w *workspace) programs(ctx context.Context) ([]store.Blob, error) {
	uv, err := w.uv(ctx)
	if err != nil {
		return nil, err
	}
	bubblewrap, err := pypi.EnsureBubblewrap(ctx, w.home, w.note, w.pypiOptions(w.store))
	if err != nil {
		return nil, err
	}
	pin := pypi.BubblewrapPin()
	var blobs []store.Blob
	var faults []error
	for _, p := range []struct{ wheel, sha256 string }{{uv.Wheel, uv.SHA256}, {filepath.Join(bubblewrap, pin.Name), pin.SHA256}} {
		b, err := w.store.Import(p.wheel)
		if err == nil && b.SHA256 != p.sha256 {
			err = diag.Errorf(diag.Fetch, "%s is damaged: expected sha256 %s, got %s", p.wheel, p.sha256, b.SHA256).
				WithHint("remove its directory: the next run brings it again")
		}
		blobs, faults = append(blobs, b), append(faults, err)
	}
	return blobs, errors.Join(faults...)
}

func (w *workspace) open(b store.Blob) (io.ReadCloser, error) {
	path, err := w.store.Use(b)
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// noteWriter passes lines on.
type noteWriter func(string, ...any)

func (n noteWriter) Write(line []byte) (int, error) {
	n("%s", strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}

func (x export) print(index carry.Index, asJSON bool, out printer) error {
	if asJSON {
		return printJSON(out, struct {
			To    string `json:"to"`
			Bytes int64  `json:"bytes"`
			carry.Index
		}{x.to, index.Bytes(), index})
	}
	for _, c := range index.Cells {
		out.say("%s %s", c.ID, c.Key[:12])
	}
	out.say("wrote %s: %d cells, %d files, %s, %d results", x.to, len(index.Cells), len(index.Blobs), megabytes(index.Bytes()), len(index.Results))
	return nil
}

func importFlags() []cli.Flag { return []cli.Flag{recipesFlag(), jsonFlag(), trustFlag()} }

func importCommand(cat catalogue.Catalogue, fault error, out printer) *cli.Command {
	return &cli.Command{
		Name: "import", Usage: "take what another machine exported, and say which cells it suffices for", ArgsUsage: "FILE|DIR…",
		OnUsageError: usageError,
		Flags:        importFlags(),
		Action: func(c *cli.Context) error {
			if fault != nil {
				return fault
			}
			if !c.Args().Present() {
				return diag.Errorf(diag.Usage, "%s: name a file or a directory", c.Command.HelpName)
			}
			o, err := readPlaces(c)
			if err != nil {
				return err
			}
			o.offline, o.json, o.trust = true, c.Bool("json"), c.StringSlice("trust")
			return importAll(c.Context, cat, o, c.Args().Slice(), out)
		},
	}
}

func importAll(ctx context.Context, cat catalogue.Catalogue, o options, paths []string, out printer) error {
	w, err := openWorkspace(ctx, o, out.note)
	if err != nil {
		return err
	}
	defer w.close()
	t := &taker{workspace: w, ctx: ctx}
	if t.trusted, err = trusted(o.trust, o.home); err != nil {
		return err
	}
	var faults []error
	for _, path := range paths {
		if _, err := carry.Read(path, t); err != nil {
			faults = append(faults, err)
		}
	}
	t.judge(cat)
	if o.json {
		return errors.Join(append(faults, printJSON(out, t.imported))...)
	}
	for _, c := range t.Cells {
		out.say("%s: %s", c.ID, c.State)
	}
	out.say("took %d files, %s, %d results; %d files were here already", t.Files, megabytes(t.Bytes), t.Results, t.Known)
	return errors.Join(faults...)
}

// imported is what import says as JSON.
type imported struct {
	Files   int            `json:"files"`
	Bytes   int64          `json:"bytes"`
	Known   int            `json:"known"` // files that were here already
	Results int            `json:"results"`
	Cells   []importedCell `json:"cells"`
}

type importedCell struct {
	ID    string `json:"id"`
	Key   string `json:"key"`
	State string `json:"state"`
}

// taker puts what is carried into the store.
type taker struct {
	*workspace
	ctx context.Context
	imported
	entries []lock.Entry
	trusted signing.Trust // whose results are taken
}

var _ carry.Taker = (*taker)(nil)

// Entry implements [carry.Taker]. An entry that this builder does not understand
// is no fault of the file.
func (t *taker) Entry(id, key string, data []byte) error {
	e, err := lock.ParseEntry(data)
	if err != nil || e.Key() != key || e.ID != id {
		t.Cells = append(t.Cells, importedCell{id, key, "another builder wrote its entry, this one makes another of it"})
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
		t.note("a result is not taken: %v", diag.First(unproven.Err))
		return nil // the files are good: the cell can be built of them
	}
	if added && err == nil {
		t.Results++
	}
	return err
}

// judge says of each cell that came whether it can be had here now.
func (t *taker) judge(cat catalogue.Catalogue) {
	asm := assembler(cat, t.options)
	for _, e := range assemble.OneOfEach(t.entries) {
		t.Cells = append(t.Cells, importedCell{e.ID, e.Key(), t.state(asm, e)})
	}
	t.Cells = append([]importedCell{}, t.Cells...) // in JSON a list is never null
}

// state compares an entry with the one that this builder makes for the same cell:
// with another one run would look for other files.
func (t *taker) state(asm *assemble.Assembler, e lock.Entry) string {
	made, err := asm.Input(t.ctx, recipe.Input{Recipe: e.Recipe, Axes: matrix.Filter(e.Axes)})
	switch {
	case err != nil:
		return fmt.Sprintf("this builder cannot make it: %v", err)
	case made[len(made)-1].Key() != e.Key():
		return "this builder makes another entry of it: bring the same version with the same recipes and locks"
	case t.results.Has(e.Key()):
		return "its result is here"
	}
	lacks := 0
	for _, b := range fetch.Blobs(e) {
		if _, ok := t.store.Path(b); !ok {
			lacks++
		}
	}
	if lacks > 0 {
		return fmt.Sprintf("%d files are not here", lacks)
	}
	return "can be built without a network"
}
