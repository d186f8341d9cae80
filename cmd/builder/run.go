package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/assemble"
	"builder/internal/catalogue"
	"builder/internal/diag"
	"builder/internal/diagnose"
	"builder/internal/fetch"
	"builder/internal/lock"
	"builder/internal/report"
	"builder/internal/results"
	"builder/internal/run"
	"builder/internal/stack"
	"builder/internal/store"
	"builder/internal/term"
	"builder/internal/verdict"
)

func runCommand(cat catalogue.Catalogue, fault error, out printer) *cli.Command {
	return &cli.Command{
		Name: "run", Usage: "build, gate and keep the chosen cells of a recipe", ArgsUsage: "RECIPE [axes]",
		Description: "The wheel, its verdicts and the logs of every step are in DIR/<cell>/,\nwhat happened is in DIR/run.json, as a page in DIR/report.html, for CI servers\nin DIR/junit.xml. The exit code is 0 only if every cell passed every gate.",
		Flags:       []cli.Flag{recipesFlag()}, OnUsageError: verbUsageError, HideHelpCommand: true,
		Action: unknownRecipe(cat, fault),
		Subcommands: recipeCommands(cat, fault, append(selectionFlags(), runFlags()...), func(c *cli.Context, o options) error {
			return doRun(c.Context, cat, o, out)
		}),
	}
}

// doRun takes the chosen cells from names to verdicts. What it returns is every
// fault of every cell.
func doRun(ctx context.Context, cat catalogue.Catalogue, o options, out printer) error {
	progress, err := o.display.begin(ctx, out)
	if err != nil {
		return err
	}
	return progress.end(runCells(ctx, cat, o, progress, out))
}

func runCells(ctx context.Context, cat catalogue.Catalogue, o options, progress *display, out printer) error {
	known, err := cat.Diagnoses()
	if err != nil {
		return err
	}
	w, err := openWorkspace(ctx, o, progress.Note)
	if err != nil {
		return err
	}
	defer w.close()
	key, err := signingKey(o.key, o.home, progress.Note)
	if err != nil {
		return err
	}
	finder, err := w.finder()
	if err != nil {
		return err
	}
	entries, err := w.entries(ctx, cat)
	if err != nil {
		return err
	}
	free, err := w.holdOut(ctx)
	if err != nil {
		return err
	}
	defer free()
	rec, err := w.record(entries)
	if err != nil {
		return err
	}
	engines := w.fleet()
	past := w.past(ctx)
	progress.Run(w.planned(past, entries), engines.Jobs())
	if w.willBuild(entries) {
		engines.Warm(ctx) // while the first files are fetched
	}
	outcomes := run.Runner{
		Fetcher: w.fetcher(), Engine: engines, Finder: finder,
		Sealer: sealer{key, describe(o), o.ccache},
		Out:    o.out, Jobs: engines.Jobs(), FailFast: o.failFast, Rebuild: o.rebuild, Now: time.Now(),
		Seconds: func(e lock.Entry) float64 {
			seconds, _ := past.Cell(e.Recipe, e.ID)
			return seconds
		},
		Watch: func(e lock.Entry) run.Events { return newWatch(o.out, e.ID, progress.Display) },
		Done: func(_ int, done run.Outcome) {
			cell := w.cell(done)
			if err := errors.Join(rec.Update(cell), w.remember(ctx, done)); err != nil {
				progress.Note("%v", err)
			}
			showDone(progress.Display, cell)
		},
	}.Run(ctx, entries)
	progress.Close()
	return w.conclude(rec, outcomes, diagnose.NewExaminer(known), out)
}

// conclude prints the result and gathers the faults.
func (w *workspace) conclude(rec *report.Recorder, outcomes []run.Outcome, examiner *diagnose.Examiner, out printer) error {
	final, err := rec.Finish(time.Now())
	if err != nil {
		return err
	}
	w.views(final)
	if w.json {
		err = printJSON(out, final)
	} else {
		header, rows := report.Summary(final)
		term.Table(out.stdout, term.Width(out.stdout), header, rows)
		sayArtifacts(outcomes, out)
	}
	faults := []error{err}
	for _, o := range outcomes {
		faults = append(faults, diagnosed(o, w.out, examiner))
	}
	return errors.Join(faults...)
}

// sayArtifacts prints where the files of the cells are. Those of a wheelhouse stand in
// its list of requirements.
func sayArtifacts(outcomes []run.Outcome, out printer) {
	for _, o := range outcomes {
		for _, a := range o.Artifacts {
			if o.Err == nil && !strings.HasPrefix(a.Name, stack.Folder+"/") {
				out.say("%s", a.Path)
			}
		}
	}
}

// diagnosed adds to the faults of a cell what is known about them.
func diagnosed(o run.Outcome, out string, examiner *diagnose.Examiner) error {
	if o.Err == nil {
		return nil
	}
	var faults []error
	for _, fault := range diag.All(o.Err) {
		if fault.Code == diag.Build && len(o.Steps) > 0 {
			fault.LogPath = filepath.Join(out, logOf(o.Entry.ID, o.Steps[len(o.Steps)-1].Name))
			fault.Log = diagnose.Meaningful(fault.LogPath, fault.Log)
			if d, ok := examiner.Cause(context.Background(), fault.LogPath); ok { // of a run that was stopped too
				fault.Hint = d.Hint()
			}
			if open := shellAt(o, out); open != "" {
				fault.Hint = strings.TrimPrefix(fault.Hint+"; "+open, "; ")
			}
		}
		faults = append(faults, fault)
	}
	return errors.Join(faults...)
}

// workspace is what one invocation works with.
type workspace struct {
	options
	store   *store.Store
	results *results.Results
	engines []*engine
	scratch string
	note    func(string, ...any)
	uv      func(context.Context) (uvTool, error)
	close   func() // lets the store be collected again
}

func openWorkspace(ctx context.Context, o options, note func(string, ...any)) (*workspace, error) {
	s, err := store.Open(filepath.Join(o.home, "store"))
	if err != nil {
		return nil, err
	}
	scratch := filepath.Join(o.home, "scratch")
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return nil, fmt.Errorf("opening the state directory: %w", err)
	}
	release, err := s.Hold(ctx, func() { note("the store is being collected: waiting for it") })
	if err != nil {
		return nil, err
	}
	w := &workspace{options: o, store: s, results: results.New(s), scratch: scratch, note: note, close: release}
	w.uv = w.uvOnce()
	for _, choice := range o.engines {
		w.engines = append(w.engines, &engine{engineChoice: choice, opts: o, store: s, scratch: scratch, note: note, uv: w.uv})
	}
	return w, nil
}

// finder looks for results here, and where --from says.
func (w *workspace) finder() (run.Finder, error) {
	trust, err := trusted(w.trust, w.home)
	return reuse{w.results, w.from, trust, w.fromOnly, w.store, w.scratch, w.note}, err
}

func (w *workspace) fetcher() *fetch.Fetcher {
	return &fetch.Fetcher{
		Store: w.store, Scratch: w.scratch, Mirrors: w.mirrors, Snapshot: w.snapshot,
		Overrides: w.overrides, Offline: w.offline, UV: w.uv,
	}
}

// holdOut waits until no other run writes to the directory of the results: two
// would take each other's wheels away.
func (w *workspace) holdOut(ctx context.Context) (free func(), err error) {
	if err := os.MkdirAll(w.out, 0o755); err != nil {
		return nil, diag.Errorf(diag.Usage, "--out: %w", err)
	}
	return store.Lock(ctx, filepath.Join(w.out, ".lock"), func() {
		w.note("another run writes to %s: waiting for it (--out DIR names another place)", w.out)
	})
}

// record begins run.json with every cell that was chosen.
func (w *workspace) record(entries []lock.Entry) (*report.Recorder, error) {
	begun := report.Run{Builder: version, Engine: describe(w.options), Started: time.Now()}
	for _, e := range entries {
		begun.Cells = append(begun.Cells, report.Cell{ID: e.ID, Key: e.Key(), Recipe: e.Recipe, Axes: e.Axes})
	}
	return report.NewRecorder(filepath.Join(w.out, "run.json"), begun)
}

// willBuild reports whether any cell will need an engine, as far as is known.
func (w *workspace) willBuild(entries []lock.Entry) bool {
	return len(w.from) == 0 && slices.ContainsFunc(entries, func(e lock.Entry) bool { return !w.results.Has(e.Key()) })
}

// cell is an outcome as run.json says it, beside the cell's own directory.
func (w *workspace) cell(o run.Outcome) report.Cell {
	c := report.Cell{
		ID: o.Entry.ID, Key: o.Entry.Key(), Recipe: o.Entry.Recipe, Axes: o.Entry.Axes,
		From: report.From(o.From), Engine: o.Engine, Artifacts: o.Artifacts,
	}
	for _, s := range o.Steps {
		c.Steps = append(c.Steps, report.Step{
			Name: s.Name, Started: s.Started.UTC().Truncate(time.Millisecond), Seconds: report.Seconds(s.Seconds), Cached: s.Cached,
			Waiting: run.IsWait(s.Name), Failed: s.Failed, Log: logOf(o.Entry.ID, s.Name),
		})
	}
	for _, v := range o.Verdicts {
		c.Verdicts = append(c.Verdicts, toReport(v))
	}
	// A cell that a gate refused has a result: its verdicts are the error.
	if code := diag.CodeOf(o.Err); o.Err != nil && !o.Skipped && (code != diag.Gate || len(o.Verdicts) == 0) {
		c.Error = &report.CellError{Code: code.String(), Message: term.Clean(o.Err.Error()), Hint: firstHint(o.Err)}
	}
	return c
}

func toReport(v verdict.Verdict) report.Verdict {
	said := report.Verdict{Gate: v.Gate, Status: v.Status.String(), Evidence: v.Evidence, Measured: v.Measured, Remedy: v.Remedy, Seconds: report.Seconds(v.Seconds)}
	if v.Waiver != nil {
		said.Waiver = &report.Waiver{Because: v.Waiver.Because, Issue: v.Waiver.Issue, Until: v.Waiver.Until}
	}
	return said
}

func firstHint(err error) string {
	for _, fault := range diag.All(err) {
		if fault.Hint != "" {
			return fault.Hint
		}
	}
	return ""
}

// entries turns the command line into locked entries: those of the chosen cells,
// and before them those of the cells that go into them.
func (w *workspace) entries(ctx context.Context, cat catalogue.Catalogue) ([]lock.Entry, error) {
	drafts, _, err := assemble.Choose(cat, w.recipe, w.filter)
	if err != nil {
		return nil, err
	}
	entries, err := w.assembler(cat).Entries(ctx, w.recipe, w.filter, drafts)
	if err != nil {
		return nil, err
	}
	if err := unusedOverrides(w.overrides, entries); err != nil {
		return nil, err
	}
	known := func(e lock.Entry) bool { return w.results.Has(e.Key()) && !w.rebuild } // a rebuild takes the inputs anew
	return assemble.Needed(entries, len(drafts), known), nil
}

// assembler makes entries of what the locks pin.
func assembler(cat catalogue.Catalogue, o options) *assemble.Assembler {
	a := &assemble.Assembler{Locks: cat.Locks(o.home), Revision: revision()}
	switch {
	case o.locked:
		a.Forbids = "--locked"
	case o.offline:
		a.Forbids = "--offline"
	}
	return a
}

// assembler makes entries; where a lock lacks something it is resolved.
func (w *workspace) assembler(cat catalogue.Catalogue) *assemble.Assembler {
	a := assembler(cat, w.options)
	a.Resolve = func(ctx context.Context, recipe string, missing lock.Missing) (lock.File, error) {
		w.note("resolving what the lock of %s lacks: %s", recipe, missing)
		pins, err := w.resolver().Resolve(ctx, recipe, missing)
		if err != nil {
			return lock.File{}, err
		}
		done, err := a.Locks.Update(recipe, catalogue.Update{Pins: pins})
		if done.Wrote {
			w.note("wrote %s", done.Path)
		}
		return done.After, err
	}
	return a
}

func (w *workspace) resolver() lock.Resolver {
	return lock.Resolver{Scratch: w.scratch, Mirrors: w.mirrors, Overrides: w.overrides, UV: w.uv, Now: time.Now}
}

// once calls f at most once and remembers what came of it, unless the context
// ended: a later caller may have a better one.
func once[T any](f func(context.Context) (T, error)) func(context.Context) (T, error) {
	var mu sync.Mutex
	var value T
	var err error
	done := false
	return func(ctx context.Context) (T, error) {
		mu.Lock()
		defer mu.Unlock()
		if !done {
			value, err = f(ctx)
			done = ctx.Err() == nil
		}
		return value, err
	}
}
