package build

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"builder/internal/app/home"
	"builder/internal/app/host"
	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/base/size"
	"builder/internal/build/run"
	"builder/internal/evidence/signing"
	"builder/internal/gates/gate"
	"builder/internal/input/store"
	machine "builder/internal/machine/host"
	"builder/internal/plan/assemble"
	"builder/internal/plan/diagnose"
	"builder/internal/plan/lock"
	"builder/internal/publishing/reuse"
	"builder/internal/view/report"
	"builder/internal/view/reportpage"
)

// A RunRequest names the cells to build and the directory of their results.
type RunRequest struct {
	plan.Selection
	Out      string    // directory of the results
	FailFast bool      // start no further cell after the first failure
	Most     gate.Need // strongest requirement of the gates to run; at least [gate.Container]
	Rebuild  bool      // build every passing cell a second time and compare
	From     []string  // directories and URLs to take cells from
	FromOnly bool      // build nothing
	Accept   []string  // recipes whose cells a site may make or change, as in [assemble.Unaccepted]
}

// A cellRun is a run in progress.
type cellRun struct {
	Setup
	*home.Workspace
	RunRequest
	trust signing.Trust
	key   signing.Key
	rec   *report.Recorder
	errs  []error // of the cells, with their diagnoses
}

// Run resolves, builds and judges the chosen cells. It returns the report written to
// run.json, empty if no cell was started, and the errors of all cells.
func Run(ctx context.Context, s Setup, r RunRequest) (report.Run, error) {
	if _, err := s.Catalogue.SiteDiagnoses(); err != nil {
		return report.Run{}, err
	}
	drafts, err := plan.Drafts(ctx, s.Setup.Setup, r.Selection) // before anything is written
	if err != nil {
		return report.Run{}, err
	}
	if len(drafts) == 0 {
		by := "the record has"
		if s.Catalogue.Site != "" {
			by = "the records of builder and of " + s.Catalogue.Site + " have"
		}
		s.Keys.Note("no value of %s is unproven: %s cells of today's inputs with each", r.Recipe.Name, by)
		return report.Run{}, nil
	}
	w, err := home.Open(ctx, s.Keys, s.NoInstall)
	if err != nil {
		return report.Run{}, err
	}
	defer w.Close()
	trust, err := s.Keys.Trusted()
	if err != nil {
		return report.Run{}, err
	}
	key, err := s.Keys.Signing()
	if err != nil {
		return report.Run{}, err
	}
	c := &cellRun{Setup: s, Workspace: w, RunRequest: r, trust: trust, key: key}
	entries, err := c.entries(ctx, drafts)
	if err != nil {
		return report.Run{}, err
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return report.Run{}, diag.Errorf(diag.Usage, "--out: %w", err)
	}
	free, err := store.Lock(ctx, filepath.Join(c.Out, ".lock"), func() { // two runs would delete each other's wheels
		c.Keys.Note("another run writes to %s: waiting for it (to write elsewhere, use --out DIR)", c.Out)
	})
	if err != nil {
		return report.Run{}, err
	}
	defer free()
	build, err := c.begin(ctx, entries)
	if err != nil {
		return report.Run{}, err
	}
	c.errs = make([]error, len(entries))
	c.runner(ctx, entries, build).Run(ctx, entries)
	final, err := c.finish()
	if err != nil {
		return report.Run{}, err
	}
	return final, errors.Join(c.errs...)
}

// entries returns the locked entries of the chosen cells, preceded by those of the input
// cells that a build needs.
func (c *cellRun) entries(ctx context.Context, drafts []lock.Draft) ([]lock.Entry, error) {
	asm := c.Sources.Assembler(c.Catalogue, c.Keys.Home).Resolving(c.Sources.Resolver(c.Workspace), c.Keys.Note)
	resolves, err := asm.Resolves(c.Recipe.Name, drafts)
	if err == nil && resolves {
		err = host.Preflight(ctx, c.Setup.Setup, nil) // before the minutes of resolving
	}
	if err != nil {
		return nil, err
	}
	entries, err := asm.Entries(ctx, c.Recipe, c.Filter, drafts)
	if err == nil {
		err = c.Sources.Unused(entries)
	}
	if err == nil && c.Catalogue.Site != "" {
		err = c.acceptSite(ctx, drafts, entries, asm.Revision)
	}
	if err != nil {
		return nil, err
	}
	return assemble.Needed(entries, len(drafts), func(e lock.Entry) bool { return !c.builds(e) }), nil // a rebuild needs the inputs again
}

// builds reports whether an entry must be built, judging by the results known so far.
func (c *cellRun) builds(e lock.Entry) bool { return c.Rebuild || !c.has(e) }

// has reports whether a known result has all verdicts required by this run.
func (c *cellRun) has(e lock.Entry) bool {
	found, ok := c.Results.Known(e.Key())
	return ok && run.Answered(found, e, max(c.Most, gate.Container))
}

// begin starts run.json with every entry, checks that the cells can be built, and returns
// the entries for this run's engine, as far as known. If they cannot be built, because the
// host or the files or images are lacking, run.json has the reason: a cell that waits long
// for its inputs would report it only then.
func (c *cellRun) begin(ctx context.Context, entries []lock.Entry) (build []lock.Entry, err error) {
	begun := report.Run{Builder: c.Version, Engine: c.Engines.Describe(), Started: time.Now()}
	var foreign []error
	for _, e := range entries {
		begun.Cells = append(begun.Cells, report.Cell{ID: e.ID, Key: e.Key(), Recipe: e.Recipe, Axes: e.Axes, Recipes: c.Catalogue.Site, Set: c.set()})
		foreign = append(foreign, run.Foreign(c.Out, e.ID))
		if c.builds(e) && len(c.From) == 0 {
			build = append(build, e)
		}
	}
	if err := errors.Join(foreign...); err != nil {
		return nil, err
	}
	if c.rec, err = report.NewRecorder(filepath.Join(c.Out, "run.json"), begun); err != nil {
		return nil, err
	}
	if c.Sources.Offline {
		err = c.Sources.Fetcher(c.Workspace).Missing(build, home.NoteWriter(c.Keys.Note))
	}
	if err == nil && len(build) > 0 {
		checked := build
		if c.Unproven {
			checked = nil // a cell whose image cannot be had fails alone
		}
		err = host.Preflight(ctx, c.Setup.Setup, checked)
	}
	if err != nil {
		return nil, errors.Join(err, c.refuse(build, err))
	}
	return build, c.noteUnprovenCells(build)
}

// noteUnprovenCells notes entries never built and judged before.
func (c *cellRun) noteUnprovenCells(build []lock.Entry) error {
	done, err := c.Catalogue.Proven()
	if err != nil {
		return err
	}
	never := 0
	for _, e := range build {
		if !c.has(e) && !done.Standing(e.ID, e.Key()).Built {
			never++
		}
	}
	if never > 0 {
		c.Display.Note("%d of %s unproven: the catalogue records no build, so the gates decide", never, size.Count(len(build), "cell"))
	}
	return nil
}

// runner returns a runner that fetches, builds and judges every entry, and records the
// outcomes.
func (c *cellRun) runner(ctx context.Context, entries, build []lock.Entry) run.Runner {
	engine := host.Retrying(c.Setup.Setup, c.Workspace)
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	c.Display.Run(ids)
	if slices.ContainsFunc(build, func(e lock.Entry) bool { return !c.has(e) }) {
		go engine.Up(ctx) // while the first files download; a build reports its error
	}
	files := c.Sources.Fetcher(c.Workspace)
	files.Tests = c.Most >= gate.Tests
	examiner := sync.OnceValue(func() *diagnose.Examiner {
		examiner, _ := c.Catalogue.Examiner() // without it the errors stand alone
		return examiner
	})
	var fetcher run.Fetcher = files
	if len(c.From) > 0 || c.Unproven {
		fetcher = checkingFetcher{files, c.Setup.Setup}
	}
	jobs := c.Engines.Choice.Jobs
	if c.Unproven {
		fetcher, jobs = &sparingFetcher{Fetcher: fetcher, workspace: c.Workspace, prune: engine.Prune, offline: c.Sources.Offline, left: slices.Clone(entries)}, 1
	}
	return run.Runner{
		Fetcher: fetcher, Engine: engine, Sealer: run.NewSealer(c.key, c.trust, c.Engines.Describe(), c.Version),
		Finder: reuse.Finder{Results: c.Results, Places: c.From, Trust: c.trust, Only: c.FromOnly, Store: c.Store, Scratch: c.Scratch, Note: c.Keys.Note},
		Out:    c.Out, Jobs: jobs, Gates: gatesAtOnce(min(jobs, len(build))), FailFast: c.FailFast, Rebuild: c.Rebuild, Most: c.Most, Now: time.Now(),
		Watch: run.Watch(c.Out, c.Display),
		Done: func(i int, done run.Outcome) {
			done.Err = c.Catalogue.Hinted(diagnosed(done, c.Out, examiner))
			c.errs[i] = done.Err
			cell := c.cellOf(done)
			if err := c.rec.Update(cell); err != nil {
				c.Keys.Note("%v", err)
			}
			showDone(c.Display, cell)
		},
	}
}

// A checkingFetcher fetches the files of an entry if this host can build it. With places of
// published cells, a run knows only when no place has a cell that it must be built. A
// covering run builds the cells whose images it can have.
type checkingFetcher struct {
	run.Fetcher
	setup host.Setup
}

// Fetch implements [run.Fetcher].
func (f checkingFetcher) Fetch(ctx context.Context, e lock.Entry, progress io.Writer) error {
	if err := host.Preflight(ctx, f.setup, []lock.Entry{e}); err != nil {
		return err
	}
	return f.Fetcher.Fetch(ctx, e, progress)
}

// perGate is the memory set aside for a gate with two ranks that import a framework, in
// bytes.
const perGate = 2 << 30

// gatesAtOnce returns how many gates in containers may run at a time for each of jobs
// cells on this host. Ranks wait for each other, so there is one more than processors.
func gatesAtOnce(jobs int) int {
	n := runtime.NumCPU() + 1
	if memory, err := machine.This().Memory(); err == nil {
		n = min(n, int(memory/perGate))
	}
	return min(4, max(1, n/max(1, jobs)))
}

// refuse records the reason why no entry was started.
func (c *cellRun) refuse(entries []lock.Entry, why error) error {
	why = c.Catalogue.Hinted(why)
	var errs []error
	for _, e := range entries {
		errs = append(errs, c.rec.Update(c.cellOf(run.Outcome{Entry: e, Err: why})))
	}
	_, err := c.finish()
	return errors.Join(append(errs, err)...)
}

// finish completes run.json and writes its pages. They are derived from run.json: a write
// error is noted and is no error of a cell.
func (c *cellRun) finish() (report.Run, error) {
	final, err := c.rec.Finish(time.Now())
	if err != nil {
		return final, err
	}
	root, err := os.OpenRoot(c.Out)
	if err == nil {
		err = reportpage.WriteFiles(c.Out, final, reportpage.Options{Logs: root.FS(), LogDir: c.Out})
		root.Close()
	}
	if err != nil {
		c.Keys.Note("%v", err)
	}
	return final, nil
}

// set returns the values of --set for the commands of the pages.
func (c *cellRun) set() (values []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Sources.Overrides)) {
		for _, place := range c.Sources.Overrides[name] {
			values = append(values, diag.Redact("source."+name+"="+place))
		}
	}
	return values
}
