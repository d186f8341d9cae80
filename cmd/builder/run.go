package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/app/catalogue"
	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/gates/verdict"
	"builder/internal/plan/diagnose"
	"builder/internal/plan/lock"
	"builder/internal/plan/stack"
	"builder/internal/view/report"
	"builder/internal/view/term"
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
	trust, err := trusted(o.trust, o.home)
	if err != nil {
		return err
	}
	entries, err := w.entries(ctx, cat)
	if err != nil {
		return err
	}
	if err := w.makeRoom(ctx, entries); err != nil {
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
	if build := w.toBuild(entries); len(build) > 0 && len(w.from) == 0 {
		if err := w.ready(ctx, build); err != nil {
			return errors.Join(err, w.refuse(rec, build, err))
		}
	}
	engines := w.fleet()
	past := w.past(ctx)
	progress.Run(w.planned(past, entries), engines.Jobs())
	if w.willBuild(entries) {
		engines.Warm(ctx) // while the first files are fetched
	}
	outcomes := run.Runner{
		Fetcher: w.fetcher(), Engine: engines, Finder: w.finder(trust),
		Sealer: sealer{key, trust, describe(o), o.ccache},
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

// refuse writes down why none of the entries was begun.
func (w *workspace) refuse(rec *report.Recorder, entries []lock.Entry, why error) error {
	var faults []error
	for _, e := range entries {
		faults = append(faults, rec.Update(w.cell(run.Outcome{Entry: e, Err: why})))
	}
	final, err := rec.Finish(time.Now())
	if err == nil {
		w.views(final)
	}
	return errors.Join(append(faults, err)...)
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
		From: report.From(o.From), Engine: diag.Redact(o.Engine), Artifacts: o.Artifacts,
	}
	for _, s := range o.Steps {
		c.Steps = append(c.Steps, report.Step{
			Name: s.Name, Started: s.Started.UTC().Truncate(time.Millisecond), Seconds: report.Seconds(s.Seconds), Cached: s.Cached,
			Waiting: run.IsWait(s.Name), Failed: s.Failed, Log: logOf(o.Entry.ID, s.Name),
		})
	}
	if c.From == report.Store || c.From == report.Registry {
		c.Taken = report.Seconds(o.Took.Seconds())
	}
	for _, v := range o.Verdicts {
		c.Verdicts = append(c.Verdicts, toReport(v))
	}
	// A cell that a gate refused has a result: its verdicts are the error.
	if code := diag.CodeOf(o.Err); o.Err != nil && !o.Skipped && (code != diag.Gate || len(o.Verdicts) == 0) {
		c.Error = &report.CellError{Code: code.String(), Message: diag.Redact(term.Clean(o.Err.Error())), Hint: diag.Redact(firstHint(o.Err))}
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
