package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"builder/internal/base/diag"
	"builder/internal/build/history"
	"builder/internal/build/run"
	"builder/internal/evidence/signing"
	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/input/store"
	"builder/internal/plan/diagnose"
	"builder/internal/plan/lock"
	"builder/internal/publishing/reuse"
	"builder/internal/view/report"
	"builder/internal/view/term"
)

// A RunRequest says which cells are to be built, and where their results go.
type RunRequest struct {
	Selection
	Out      string    // directory of the results
	FailFast bool      // begin no further cell after the first that fails
	Most     gate.Need // what a gate may need to be asked, at least [gate.Container]
	Rebuild  bool      // build every cell that passed a second time and compare
	From     []string  // places to take cells from: directories and addresses
	FromOnly bool      // build nothing
}

// A cellRun is a run at work.
type cellRun struct {
	*workspace
	RunRequest
	trust    signing.Trust
	sealer   run.Sealer
	examiner *diagnose.Examiner
	past     history.History
	rec      *report.Recorder
}

// Run takes the chosen cells from names to verdicts. The report is that of run.json,
// empty where no cell was begun; the error is every fault of every cell.
func Run(ctx context.Context, s *Session, r RunRequest) (report.Run, error) {
	known, err := s.Catalogue.Diagnoses()
	if err != nil {
		return report.Run{}, err
	}
	w, err := s.open(ctx)
	if err != nil {
		return report.Run{}, err
	}
	defer w.close()
	sealer, err := s.Sealer()
	if err != nil {
		return report.Run{}, err
	}
	trust, err := s.Trusted()
	if err != nil {
		return report.Run{}, err
	}
	c := &cellRun{workspace: w, RunRequest: r, trust: trust, sealer: sealer, examiner: diagnose.NewExaminer(known)}
	entries, err := w.entries(ctx, r.Selection, func(e lock.Entry) bool { return !c.builds(e) }) // a rebuild takes the inputs anew
	if err != nil {
		return report.Run{}, err
	}
	return c.run(ctx, entries)
}

// builds reports whether an entry is to be built, as far as its result is known.
func (c *cellRun) builds(e lock.Entry) bool { return c.Rebuild || !c.has(e) }

// has reports whether a result is known that has all verdicts that this run asks for.
func (c *cellRun) has(e lock.Entry) bool {
	found, ok := c.results.Known(e.Key())
	return ok && run.Answered(found, e, max(c.Most, gate.Container))
}

// run takes entries to verdicts.
func (c *cellRun) run(ctx context.Context, entries []lock.Entry) (report.Run, error) {
	var build []lock.Entry // by the engines of this run, as far as is known
	for _, e := range entries {
		if c.builds(e) && len(c.From) == 0 {
			build = append(build, e)
		}
	}
	if err := c.makeRoom(ctx, build); err != nil {
		return report.Run{}, err
	}
	free, err := c.holdOut(ctx)
	if err != nil {
		return report.Run{}, err
	}
	defer free()
	if err := c.record(entries); err != nil {
		return report.Run{}, err
	}
	if len(build) > 0 {
		if err := c.ready(ctx, build); err != nil {
			return report.Run{}, errors.Join(err, c.refuse(build, err))
		}
	}
	if err := c.sayUnproven(build); err != nil {
		return report.Run{}, err
	}
	outcomes := c.take(ctx, entries, build)
	final, err := c.finish()
	if err != nil {
		return report.Run{}, err
	}
	var faults []error
	for _, o := range outcomes {
		faults = append(faults, diagnosed(o, c.Out, c.examiner))
	}
	return final, errors.Join(faults...)
}

// sayUnproven notes which entries nobody has built and gated before.
func (c *cellRun) sayUnproven(build []lock.Entry) error {
	done, err := c.Catalogue.Proven()
	if err != nil {
		return err
	}
	var never []string
	for _, e := range build {
		if !c.has(e) && !done.Standing(e.ID, e.Key()).Built {
			never = append(never, e.ID)
		}
	}
	switch {
	case len(never) == 1:
		c.Display.Note("%s was never built before, as far as this catalogue knows: its gates decide", never[0])
	case len(never) > 1:
		c.Display.Note("%d of %d cells were never built before, as far as this catalogue knows: their gates decide", len(never), len(build))
	}
	return nil
}

// take has every entry fetched, built and judged, and writes down what becomes of it.
func (c *cellRun) take(ctx context.Context, entries, build []lock.Entry) []run.Outcome {
	engines := c.fleet()
	c.past = c.history(ctx)
	c.Display.Run(c.planned(c.past, entries), engines.Jobs())
	if slices.ContainsFunc(build, func(e lock.Entry) bool { return !c.has(e) }) {
		engines.Warm(ctx) // while the first files are fetched
	}
	files := c.fetcher()
	files.Tests = c.Most >= gate.Tests
	return run.Runner{
		Fetcher: files, Engine: engines, Finder: c.finder(), Sealer: c.sealer,
		Out: c.Out, Jobs: engines.Jobs(), FailFast: c.FailFast, Rebuild: c.Rebuild, Most: c.Most, Now: time.Now(),
		Seconds: func(e lock.Entry) float64 {
			seconds, _ := c.past.Cell(e.Recipe, e.ID)
			return seconds
		},
		Watch: func(e lock.Entry) run.Events { return NewWatch(c.Out, e.ID, c.Display) },
		Done: func(_ int, done run.Outcome) {
			cell := cellOf(done)
			if err := errors.Join(c.rec.Update(cell), c.remember(ctx, done)); err != nil {
				c.Note("%v", err)
			}
			showDone(c.Display, cell)
		},
	}.Run(ctx, entries)
}

// finder looks for results here, and where --from says.
func (c *cellRun) finder() run.Finder {
	return reuse.Finder{Results: c.results, Places: c.From, Trust: c.trust, Only: c.FromOnly, Store: c.store, Scratch: c.scratch, Note: c.Note}
}

// holdOut waits until no other run writes to the directory of the results: two
// would take each other's wheels away.
func (c *cellRun) holdOut(ctx context.Context) (free func(), err error) {
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return nil, diag.Errorf(diag.Usage, "--out: %w", err)
	}
	return store.Lock(ctx, filepath.Join(c.Out, ".lock"), func() {
		c.Note("another run writes to %s: waiting for it (--out DIR names another place)", c.Out)
	})
}

// refuse writes down why none of the entries was begun.
func (c *cellRun) refuse(entries []lock.Entry, why error) error {
	var faults []error
	for _, e := range entries {
		faults = append(faults, c.rec.Update(cellOf(run.Outcome{Entry: e, Err: why})))
	}
	_, err := c.finish()
	return errors.Join(append(faults, err)...)
}

// finish ends run.json and writes the views of it.
func (c *cellRun) finish() (report.Run, error) {
	final, err := c.rec.Finish(time.Now())
	if err == nil {
		c.views(final)
	}
	return final, err
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
func (c *cellRun) record(entries []lock.Entry) (err error) {
	begun := report.Run{Builder: c.Version, Engine: c.describe(), Started: time.Now()}
	for _, e := range entries {
		begun.Cells = append(begun.Cells, report.Cell{ID: e.ID, Key: e.Key(), Recipe: e.Recipe, Axes: e.Axes})
	}
	c.rec, err = report.NewRecorder(filepath.Join(c.Out, "run.json"), begun)
	return err
}

// cellOf is an outcome as run.json says it, beside the cell's own directory.
func cellOf(o run.Outcome) report.Cell {
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
