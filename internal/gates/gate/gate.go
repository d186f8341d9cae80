// Package gate asks named questions about a finished artifact: of its bytes, of
// the artifact as it runs in a clean container, and on GPUs. [All] is the list.
//
// A gate judges by [recipe.Expect], what the artifact promises, and never by how
// it was built. One that crashed, timed out, found nothing to look at or could not
// parse what it got has not measured, which is never a pass. What a verdict means
// for the artifact is the package verdict's; how a library is run on GPUs, the
// package device's; what a file is, promised or not, inspect's.
package gate

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"time"

	"builder/internal/gates/device"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

// A Subject is what gates look at: the file of a wheel, of the archive that is the
// artifact where Expect.Tree names one, or the manifest of a wheelhouse, the files
// that were made beside it, and what they promise. Box is nil where no container can
// be had, Stock where none holds the source as upstream released it, Device where no
// GPU is asked for, Source where the source tree is not at hand. Unpacked and Log,
// which takes what commands print, may be nil.
type Subject struct {
	Artifact string // path
	Beside   []string
	Expect   recipe.Expect
	Source   *Upstream
	Unpacked *Unpacked
	Box      Box
	Tests    Box // as Box, with upstream's tests and what they need; nil where there are none
	Stock    Box // as Box, with the source as upstream released it in the place of the artifact
	Device   *device.Setup
	Log      io.Writer
	// Keep keeps a file of results with the cell; it may be nil.
	Keep func(name string, data []byte) error
}

// Need is what has to be at hand for a gate to look, each more than the one before.
type Need int

// The needs.
const (
	File      Need = iota // the artifact as a file, and what lies beside it
	Container             // a clean container with the artifact in it: [Subject.Box]
	Tests                 // the same, with upstream's tests: asked with --tests quick and full
	Long                  // the same, and minutes: asked with --tests full alone
	GPUs                  // of this host: [Subject.Device]
	TwoBuilds             // of the cell; who builds compares them
)

// A Gate is one question.
type Gate struct {
	Name   string // as in the verdict, in docs/gates.md and on the command line
	Asks   string // the question, one line
	Remedy string // what to do where the answer is no and the evidence says no more
	// Wants reports whether the question makes sense for what is promised.
	Wants func(recipe.Expect) bool
	Needs Need
	check func(context.Context, Subject) verdict.Verdict
}

// All lists every gate, in the order in which they are asked: what needs little
// comes before what needs much.
func All() []Gate {
	return []Gate{
		partsAgree,
		wheelFormat,
		changes,
		size,
		extensionPresent,
		elfNeeded,
		rdma,
		glibcFloor,
		cpuISA,
		buildPaths,
		deviceCode,
		deviceFunctions,
		ncclABI,
		archive,
		elfSymbols,
		ncclLoad,
		importModule,
		platform,
		behaviour,
		checkBuild,
		builtFlags,
		rendezvous,
		allreduce2,
		trainStep,
		wheelhouse,
		upstreamTests,
		upstreamTestsFull,
		collectives,
		transport,
		busbw,
		Reproducible,
	}
}

// Reproducible is the gate of who builds a cell twice, and compares the builds
// itself: what one artifact holds does not answer it.
var Reproducible = Gate{
	Name:   "reproducible",
	Asks:   "a second build makes the same files of the same bytes",
	Remedy: "make the build independent of what differs: a time, a process id, a path or an order is the usual cause",
	Needs:  TwoBuilds,
	Wants:  func(recipe.Expect) bool { return true },
	check: func(context.Context, Subject) verdict.Verdict {
		return verdict.Unmeasured("there is no second build to compare with")
	},
}

// Names lists the names of all gates.
func Names() []string {
	var names []string
	for _, g := range All() {
		names = append(names, g.Name)
	}
	return names
}

// Wanted returns the gates that apply to what is promised and need no more than
// that.
func Wanted(e recipe.Expect, most Need) []Gate {
	return slices.DeleteFunc(All(), func(g Gate) bool { return g.Needs > most || !g.Wants(e) })
}

// Check asks one gate. It never panics and never returns a pass for a gate that
// did not come to its end.
func (g Gate) Check(ctx context.Context, s Subject) (v verdict.Verdict) {
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			v = g.complete(verdict.Unmeasured("the gate crashed: %v\n%s", p, debug.Stack()), start)
		}
	}()
	v = g.check(ctx, s)
	if err := ctx.Err(); err != nil {
		v = verdict.Unmeasured("stopped before it could answer: %v", err)
	}
	return g.complete(v, start)
}

// complete adds to what a check found the name, the time and, unless it passed, a
// remedy.
func (g Gate) complete(v verdict.Verdict, start time.Time) verdict.Verdict {
	v.Gate, v.Seconds = g.Name, time.Since(start).Seconds()
	if err := v.Measured.Check(); err != nil { // nobody could read the verdict back
		v.Measured = nil
		v.Evidence += fmt.Sprintf("; its figures are left out: %v", err)
	}
	v.Evidence = cut(v.Evidence, maxEvidence)
	switch {
	case v.Status == verdict.Pass:
		v.Remedy = ""
	case v.Remedy != "":
	case v.Status == verdict.NotMeasured:
		v.Remedy = "mend what kept the gate from looking, and ask again: what was not measured is not a pass"
	default:
		v.Remedy = g.Remedy
	}
	return v
}
