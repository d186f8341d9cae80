// Package run takes locked entries through fetch, build and gates, several at a
// time, and returns one outcome for each in the order of the input. One bad cell
// never takes the others with it.
//
// It knows no store, no Dagger and no terminal: what it needs from the outside it
// names as small interfaces, which package app joins to results, fleet and the
// display.
package run

import (
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
)

// Events hears what happens to one cell. Methods are called in order.
type Events interface {
	// StepStarted announces a step and returns where its log goes.
	StepStarted(step string) io.Writer
	// StepDone ends the step that was started last.
	StepDone(step string, d time.Duration, cached bool, err error)
}

// A Fetcher brings everything that an entry names into the store.
type Fetcher interface {
	Fetch(ctx context.Context, e lock.Entry, progress io.Writer) error
}

// An Engine builds one locked entry and leaves its artifacts in dir. Inputs are
// the wheels of the entry's inputs, in their order. Where the engine fails and not
// the build, the error is an [EngineError].
type Engine interface {
	// Build has look see what was built while the engine keeps the box of the
	// gates. The context of look ends when the engine is lost. Look may be called
	// more than once, by an engine that begins anew; the last time counts.
	Build(ctx context.Context, e lock.Entry, inputs []artifact.Artifact, dir string, events Events, look Look) error
	// Rebuild builds an entry anew, whatever is known of it.
	Rebuild(ctx context.Context, e lock.Entry, inputs []artifact.Artifact, dir string, events Events) ([]artifact.Artifact, error)
}

// Look sees what was built.
type Look func(ctx context.Context, b Built) error

// Built is what an engine made: the wheel, or the archive that takes its place,
// then the files beside it.
type Built struct {
	Artifacts []artifact.Artifact
	Source    string // path of the archive of the source tree
	Box       gate.Box
	// Tests makes the container with upstream's tests; nil where the entry has none.
	Tests  func(context.Context) (gate.Box, error)
	Stock  gate.Box // with the source as released in the place of the wheel; nil where no gate asks it
	Canary string   // what the canary of the build step saw, as JSON
	Engine string   // where it was built: the address of the engine
}

// A Finder knows the results of earlier runs by the key of the entry.
type Finder interface {
	// Find lays the artifacts of a result out in dir.
	Find(ctx context.Context, e lock.Entry, dir string) (Result, bool, error)
	// Keep remembers a result that passed.
	Keep(e lock.Entry, r Result) error
	// Forget makes a result unknown that turned out not to hold.
	Forget(e lock.Entry) error
}

// A Sealer signs what is known of artifacts that passed.
type Sealer interface {
	// Seal writes what a round of gates found into the folder of the first artifact,
	// and before the first round how the artifacts were made. It returns all files of
	// the folder.
	Seal(e lock.Entry, r Result, round []verdict.Verdict) ([]artifact.Artifact, error)
}

// A Result is what is worth remembering of a cell that passed.
type Result struct {
	Artifacts []artifact.Artifact `json:"artifacts"`
	Verdicts  []verdict.Verdict   `json:"verdicts"`
	Steps     []Step              `json:"steps"`
	Canary    string              `json:"canary"`
	Engine    string              `json:"engine,omitempty"` // address of the one that built it
	// Attestations are the files of [attest.Dir] of the first artifact.
	Attestations []artifact.Artifact `json:"attestations"`
	From         From                `json:"-"` // "" is the store, in what a [Finder] finds
	Started      time.Time           `json:"started"`
	Finished     time.Time           `json:"finished"`
}

// From says where a cell's artifacts came from.
type From string

// The places that artifacts come from.
const (
	FromBuild    From = "build"
	FromStore    From = "store"
	FromRegistry From = "registry" // published by somebody who is trusted
)

// An Outcome is what became of one entry.
type Outcome struct {
	Entry lock.Entry
	Result
	Took    time.Duration // in this run
	Err     error         // nil, or why the cell is not done; a gate that refused is class diag.Gate
	Skipped bool          // not begun, because another cell failed and the run was to stop
}

// A Runner runs entries.
type Runner struct {
	Fetcher  Fetcher
	Engine   Engine
	Finder   Finder
	Sealer   Sealer
	Out      string    // directory of the results; each cell has one of its id below it
	Jobs     int       // cells at a time, at least 1
	FailFast bool      // begin no further cell after the first that failed
	Rebuild  bool      // build every cell that passed once more and compare
	Most     gate.Need // what a gate may need to be asked, at least [gate.Container]
	// Now is the time that waivers are judged by; nothing that is built depends on
	// it.
	Now time.Time
	// Seconds estimates how long an entry takes; it may be nil. Of those that may
	// begin the longest begin first, so that none is left alone at the end.
	Seconds func(lock.Entry) float64
	// Watch returns what hears about a cell.
	Watch func(lock.Entry) Events
	// Done is told every outcome as it comes.
	Done func(index int, o Outcome)
}

// Run takes every entry as far as it goes. An entry whose inputs are other
// entries of the run begins when those are done.
func (r Runner) Run(ctx context.Context, entries []lock.Entry) []Outcome {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	outcomes := make([]Outcome, len(entries))
	done := map[string]*Outcome{}
	for _, wave := range waves(entries) {
		r.longestFirst(wave, entries)
		mapper := iter.Iterator[int]{MaxGoroutines: max(1, r.Jobs)}
		mapper.ForEach(wave, func(i *int) {
			o := r.one(ctx, entries[*i], done)
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

// longestFirst orders the indexes of entries by what they are expected to take;
// those of which nothing is known keep their order.
func (r Runner) longestFirst(wave []int, entries []lock.Entry) {
	if r.Seconds == nil {
		return
	}
	slices.SortStableFunc(wave, func(a, b int) int { return cmp.Compare(r.Seconds(entries[b]), r.Seconds(entries[a])) })
}

var errFailFast = errors.New("another cell failed and --fail-fast was given")

// one takes a single entry; a panic becomes its outcome, because conc would
// lose the items behind it.
func (r Runner) one(ctx context.Context, e lock.Entry, done map[string]*Outcome) (o Outcome) {
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
	inputs := func() ([]artifact.Artifact, error) { return inputsOf(e, done) }
	o.Err = r.take(ctx, e, inputs, filepath.Join(r.Out, e.ID), &o.Result)
	o.Took = time.Since(begun)
	if o.Err != nil {
		_, o.Skipped = errors.AsType[*inputError](o.Err)
		o.Err = &cellError{id: e.ID, err: o.Err}
	}
	return o
}

// take brings an entry to its result, out of the store or by a build. The entry
// is written down before either, so that a run that fails can be compared too. A
// result that is known needs no inputs: they need not be part of the run.
func (r Runner) take(ctx context.Context, e lock.Entry, inputsOf func() ([]artifact.Artifact, error), dir string, result *Result) error {
	if err := lock.WriteEntry(dir, e); err != nil {
		return fmt.Errorf("writing the entry: %w", err)
	}
	found, known, err := r.Finder.Find(ctx, e, dir)
	if err != nil {
		return err
	}
	known = known && Answered(found, e, r.most())
	if known {
		*result = r.recalled(found, e)
		if !r.Rebuild || reproduced(found) {
			return keepBack(dir, result)
		}
	}
	inputs, err := inputsOf()
	if err != nil {
		return errors.Join(err, removeStale(dir)) // what lies there was made of other inputs
	}
	if !known {
		result.From = FromBuild
		if err := r.build(ctx, e, inputs, dir, result); err != nil || !r.Rebuild {
			return err
		}
	}
	return r.rebuild(ctx, e, inputs, dir, result)
}

// most is how much the gates of this run may need.
func (r Runner) most() gate.Need {
	return max(r.Most, gate.Container)
}

// Answered reports whether a result has a verdict of every gate on upstream's tests
// that may be asked: it may come from a run that did not ask them.
func Answered(found Result, e lock.Entry, most gate.Need) bool {
	return !slices.ContainsFunc(gate.Wanted(e.Expect, most), func(g gate.Gate) bool {
		return g.Needs >= gate.Tests && !slices.ContainsFunc(found.Verdicts, func(v verdict.Verdict) bool { return v.Gate == g.Name })
	})
}

// recalled is a result of an earlier run as one of this: none of its steps is done
// now, and its waivers are judged by the time that it is now.
func (r Runner) recalled(found Result, e lock.Entry) Result {
	found.From = cmp.Or(found.From, FromStore)
	found.Verdicts = verdict.WaiveAll(found.Verdicts, e.Expect.Waivers, r.Now)
	found.Steps = slices.Clone(found.Steps)
	for i := range found.Steps {
		found.Steps[i].Cached = true
	}
	return found
}

// build fetches, builds and gates, and keeps what passed.
func (r Runner) build(ctx context.Context, e lock.Entry, inputs []artifact.Artifact, dir string, result *Result) error {
	rec := &recorded{Events: r.Watch(e), result: result}
	result.Started = time.Now()
	if err := Fetch(ctx, rec, r.Fetcher, e); err != nil {
		return err
	}
	if err := errors.Join(removeStale(dir), os.RemoveAll(filepath.Join(dir, TestsDir))); err != nil {
		return err
	}
	err := r.Engine.Build(ctx, e, inputs, dir, rec, func(ctx context.Context, built Built) (err error) {
		result.Artifacts, result.Canary, result.Engine = built.Artifacts, built.Canary, built.Engine
		result.Verdicts, err = r.gates(ctx, rec, e, dir, built)
		return err
	})
	if err != nil {
		return err
	}
	if err := keepBack(dir, result); err != nil {
		return errors.Join(err, r.Finder.Forget(e)) // it may be known from a run that asked less
	}
	result.Finished = time.Now()
	return r.seal(e, result, result.Verdicts)
}

// seal signs what a round of gates found about artifacts that passed, and keeps
// the result.
func (r Runner) seal(e lock.Entry, result *Result, round []verdict.Verdict) error {
	files, err := r.Sealer.Seal(e, *result, round)
	if err != nil {
		return fmt.Errorf("sealing the artifacts: %w", err)
	}
	result.Attestations = files
	return r.Finder.Keep(e, *result)
}
