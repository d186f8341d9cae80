// Package run takes locked entries through fetch, build and gates, several at a time.
// It returns one outcome for each, in the order of the input. A failed cell never stops
// the others by itself.
//
// The package does not know the store or Dagger. It declares small interfaces for
// them, and package app/build connects these to results and pipelines.
package run

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/sourcegraph/conc/iter"

	"builder/internal/files/artifact"
	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/plan/lock"
	"builder/internal/view/report"
)

// Events receives the progress of one cell. Its methods are called in order.
type Events interface {
	// StepStarted announces a step and returns the writer of its log.
	StepStarted(step string) io.Writer
	// StepDone ends the last started step.
	StepDone(step string, d time.Duration, cached bool, err error)
}

// A Fetcher brings every file of an entry into the store.
type Fetcher interface {
	Fetch(ctx context.Context, e lock.Entry, progress io.Writer) error
}

// An Engine builds locked entries.
type Engine interface {
	// Build does a job and calls look with the output, while the container for the gates
	// still exists. The context of look ends if the engine is lost. An engine that
	// restarts the build calls look again; the last call counts. If the engine fails and
	// not the build, the error is an [EngineError].
	Build(ctx context.Context, job Job, events Events, look Look) error
}

// A Job is one build of an entry.
type Job struct {
	Entry  lock.Entry
	Inputs []artifact.Artifact // wheels of the entry's inputs, in the same order
	Dir    string              // directory for the artifacts
	Again  bool                // build even if the engine has the result cached, and make only artifacts
}

// Look checks the output of a build.
type Look func(ctx context.Context, b Built) error

// Built is the output of an engine. The first artifact is the wheel, or the archive in
// its place. Files beside it follow.
type Built struct {
	Artifacts []artifact.Artifact
	Source    string // path of the source tree's archive
	Box       gate.Box
	// Tests makes the container with upstream's tests. It is nil if the entry has none.
	Tests  func(context.Context) (gate.Box, error)
	Stock  gate.Box // has the released source in place of the wheel; nil if no gate needs it
	Canary string   // findings of the build step's canary, as JSON
	Ccache string   // hits of the compiler cache in the build step, as JSON; "" without it
	Engine string   // address of the engine
}

// A Finder finds the results of earlier runs by the key of the entry.
type Finder interface {
	// Find copies the artifacts of a known result into dir.
	Find(ctx context.Context, e lock.Entry, dir string) (Result, bool, error)
	// Keep stores a passed result.
	Keep(e lock.Entry, r Result) error
	// Forget removes an invalid result.
	Forget(e lock.Entry) error
}

// A Sealer signs statements about passed artifacts.
type Sealer interface {
	// Seal writes the verdicts of a round of gates into the folder of the first
	// artifact. In the first round it also writes the provenance. It returns all files
	// of the folder.
	Seal(e lock.Entry, r Result, round []verdict.Verdict) ([]artifact.Artifact, error)
}

// A Result is the record of a passed cell.
type Result struct {
	Artifacts []artifact.Artifact `json:"artifacts"`
	Verdicts  []verdict.Verdict   `json:"verdicts"`
	Steps     []report.Step       `json:"steps"` // without their logs
	Canary    string              `json:"canary"`
	Ccache    string              `json:"ccache,omitempty"` // as in [Built]
	Engine    string              `json:"engine,omitempty"` // address of the engine that built it
	// Gates is the [gate.Digest] of the gates that judged it, or Published.
	Gates string `json:"gates"`
	// Attestations are the files of [attest.Dir] of the first artifact.
	Attestations []artifact.Artifact `json:"attestations"`
	From         report.From         `json:"-"` // a Finder may leave it empty for the store
	Started      time.Time           `json:"started"`
	Finished     time.Time           `json:"finished"`
}

// Published is the Gates of a result taken from a published place: its publisher's gates
// judged it, and the user trusts the publisher.
const Published = "published"

// Seconds returns how long the steps of the result took.
func (r Result) Seconds() (sum float64) {
	for _, s := range r.Steps {
		sum += float64(s.Seconds)
	}
	return sum
}

// An Outcome is the outcome of one entry.
type Outcome struct {
	Entry lock.Entry
	Result
	Took    time.Duration // duration in this run
	Err     error         // nil if the cell passed; class diag.Gate if a gate refused it
	Skipped bool          // not started: another cell failed under FailFast, or an input is missing
}

// A Runner runs entries.
type Runner struct {
	Fetcher  Fetcher
	Engine   Engine
	Finder   Finder
	Sealer   Sealer
	Out      string    // directory of the results, with a subdirectory for each cell ID
	Jobs     int       // cells at a time, at least 1
	Gates    int       // gates in containers at a time for each cell, at least 1
	FailFast bool      // start no further cell after the first failure
	Rebuild  bool      // build every passed cell again and compare
	Most     gate.Need // run only gates with at most this need, at least [gate.Container]
	// Now is the time for checking the end of waivers. It does not affect builds.
	Now time.Time
	// Watch returns the receiver of a cell's events.
	Watch func(id string) Events
	// Done is called with every outcome as it arrives.
	Done func(index int, o Outcome)
}

// Run processes every entry. An entry with inputs in the run starts after them.
func (r Runner) Run(ctx context.Context, entries []lock.Entry) []Outcome {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	outcomes := make([]Outcome, len(entries))
	done := map[string]*Outcome{}
	for _, wave := range waves(entries) {
		mapper := iter.Iterator[int]{MaxGoroutines: max(1, r.Jobs)}
		mapper.ForEach(wave, func(i *int) {
			o := r.runCell(ctx, entries[*i], done)
			if o.Err != nil && r.FailFast {
				stop(errFailFast)
			}
			outcomes[*i] = o
			r.Done(*i, o)
		})
		for _, i := range wave {
			done[entries[i].Key()] = &outcomes[i]
		}
	}
	return outcomes
}

var errFailFast = errors.New("another cell failed and --fail-fast was given")

// runCell processes a single entry. A panic becomes its outcome, because conc would lose
// the items behind it.
func (r Runner) runCell(ctx context.Context, e lock.Entry, done map[string]*Outcome) (o Outcome) {
	defer func() {
		if p := recover(); p != nil {
			o = Outcome{Entry: e, Err: fmt.Errorf("cell %s: panic: %v\n%s", e.ID, p, debug.Stack())}
		}
	}()
	if ctx.Err() != nil {
		return Outcome{Entry: e, Skipped: true, Err: context.Cause(ctx)}
	}
	o = Outcome{Entry: e}
	begun := time.Now()
	in := folderOf(r.Out, e.ID)
	if o.Result, o.Err = r.reuseOrBuild(ctx, e, done, in); o.Err == nil {
		o.Err = in.onlyListed()
	}
	o.Took = time.Since(begun)
	if o.Err != nil {
		_, o.Skipped = errors.AsType[*inputError](o.Err)
		o.Err = &cellError{id: e.ID, err: o.Err}
	}
	return o
}

// reuseOrBuild gets the result of an entry from the store or by a build. It first removes
// all files of an earlier run with other inputs, its logs too, and writes the entry, so that
// failed runs can be compared too. A known result needs no inputs, so they need not be part
// of the run.
func (r Runner) reuseOrBuild(ctx context.Context, e lock.Entry, done map[string]*Outcome, in folder) (Result, error) {
	dir := in.dir
	old, err := os.ReadFile(filepath.Join(dir, lock.EntryFile))
	if err == nil && !bytes.Equal(old, e.Canonical()) { // without an entry the directory may hold anything
		err := in.removeStale()
		for _, name := range []string{TestsDir, RebuiltDir, logDir} {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, name)))
		}
		if err != nil {
			return Result{}, err
		}
	}
	if err := lock.WriteEntry(dir, e); err != nil {
		return Result{}, fmt.Errorf("writing the entry: %w", err)
	}
	found, known, err := r.Finder.Find(ctx, e, dir)
	if err == nil {
		err = in.add(found.Artifacts)
	}
	if err != nil {
		return Result{}, err
	}
	known = known && Answered(found, e, r.most())
	var result Result
	if known {
		result = r.recalled(found, e)
		compared := func(v verdict.Verdict) bool { return v.Gate == gate.Reproducible.Name }
		if !r.Rebuild || slices.ContainsFunc(found.Verdicts, compared) {
			return keepBack(dir, result)
		}
	}
	inputs, err := inputsOf(e, done)
	if err != nil {
		return result, errors.Join(err, in.removeStale()) // the artifacts in dir are from other inputs
	}
	if !known {
		result, err = r.build(ctx, e, inputs, in, found.Artifacts)
		if err != nil || !r.Rebuild {
			return result, err
		}
	}
	return r.rebuild(ctx, e, inputs, dir, result)
}

// most returns the largest need of a gate to run.
func (r Runner) most() gate.Need {
	return max(r.Most, gate.Container)
}

// Answered reports whether a result has a verdict of every requested gate on upstream's
// tests. A result may come from a run without those gates.
func Answered(found Result, e lock.Entry, most gate.Need) bool {
	return !slices.ContainsFunc(gate.Wanted(e.Expect, most), func(g gate.Gate) bool {
		return g.Needs >= gate.Tests && !slices.ContainsFunc(found.Verdicts, func(v verdict.Verdict) bool { return v.Gate == g.Name })
	})
}

// recalled returns a stored result as one of this run: its steps count as cached, and
// its waivers are checked at the current time.
func (r Runner) recalled(found Result, e lock.Entry) Result {
	found.From = cmp.Or(found.From, report.Store)
	found.Verdicts = verdict.WaiveAll(found.Verdicts, e.Expect.Waivers, r.Now)
	found.Steps = slices.Clone(found.Steps)
	for i := range found.Steps {
		found.Steps[i].Cached = true
	}
	return found
}

// build fetches and builds an entry, runs the gates and keeps a passed result. earlier
// are the artifacts of a known result that lacks verdicts. They stay in dir until the
// build replaces them, and their statements until the new ones are signed.
func (r Runner) build(ctx context.Context, e lock.Entry, inputs []artifact.Artifact, in folder, earlier []artifact.Artifact) (result Result, err error) {
	result.From = report.Build
	dir := in.dir
	if err := os.RemoveAll(filepath.Join(dir, logDir)); err != nil {
		return result, err // logs of an earlier run would name causes that are gone
	}
	rec := &recorded{Events: r.Watch(e.ID), result: &result}
	result.Started = time.Now()
	if err := Fetch(ctx, rec, r.Fetcher, e); err != nil {
		return result, err
	}
	if err := errors.Join(in.removeStale(earlier...), os.RemoveAll(filepath.Join(dir, TestsDir))); err != nil {
		return result, err
	}
	err = r.Engine.Build(ctx, Job{Entry: e, Inputs: inputs, Dir: dir}, rec, func(ctx context.Context, built Built) (err error) {
		result.Artifacts, result.Canary, result.Ccache, result.Engine = built.Artifacts, built.Canary, built.Ccache, built.Engine
		if err := in.add(built.Artifacts); err != nil {
			return err
		}
		result.Gates = gate.Digest()
		result.Verdicts, err = r.gates(ctx, rec, e, dir, built)
		return err
	})
	if err != nil {
		return result, err
	}
	if result, err = keepBack(dir, result); err != nil {
		return result, errors.Join(err, r.Finder.Forget(e)) // a run with fewer gates may have kept it
	}
	result.Finished = time.Now()
	return r.seal(e, result, result.Verdicts)
}

// seal signs the verdicts of a round of gates on passed artifacts and keeps the result.
func (r Runner) seal(e lock.Entry, result Result, round []verdict.Verdict) (Result, error) {
	files, err := r.Sealer.Seal(e, result, round)
	if err != nil {
		return result, fmt.Errorf("sealing the artifacts: %w", err)
	}
	result.Attestations = files
	return result, r.Finder.Keep(e, result)
}
