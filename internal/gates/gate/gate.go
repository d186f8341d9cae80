// Package gate checks a finished artifact: its bytes, its behaviour in a clean
// container, and its behaviour on GPUs. [All] lists the gates.
//
// A gate judges by [recipe.Expect], the promises of the artifact, and never by how the
// artifact was built. A gate that crashed, timed out, found nothing to check or could
// not parse its input has not measured, which is never a pass. Package verdict defines
// the meaning of a verdict, package device runs libraries on GPUs, and package inspect
// determines the properties of a file, promised or not.
package gate

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"io/fs"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"builder/internal/gates/device"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

// A Subject is the input of the gates: the artifact, the files made beside it, and its
// promises. The artifact is a wheel or the archive named by Expect.Tree. Box is nil
// without a container, Stock without a container of upstream's release, Device if no GPU
// is requested, Framework without an environment of this host, and Source without the
// source tree. Unpacked may be nil, and so may Log, which receives the output of commands.
type Subject struct {
	Artifact string // path
	Beside   []string
	Expect   recipe.Expect
	Source   *Upstream
	Unpacked *Unpacked
	Box      Box
	Tests    Box // a Box with upstream's tests and their dependencies; nil if there are none
	Stock    Box // a Box with upstream's release in place of the artifact
	Device   *device.Setup
	// Framework runs programs on this host, in an environment with the framework and the
	// artifact.
	Framework Box
	TestsTree string // directory on this host with the tree of upstream's tests, for Framework; "" is none
	Log       io.Writer
	// Keep stores a file of results with the cell. It may be nil.
	Keep func(name string, data []byte) error
}

// Need is the precondition of a gate. Each need includes more than the one before.
type Need int

// The needs.
const (
	File      Need = iota // the artifact as a file, and the files beside it
	Container             // a clean container with the artifact: [Subject.Box]
	Tests                 // the same with upstream's tests: runs with --tests quick and full
	Long                  // the same, for minutes: runs with --tests full only
	GPUs                  // GPUs of this host: [Subject.Device]
	TwoBuilds             // two builds of the cell, compared by the caller
)

// A Gate is one check.
type Gate struct {
	Name   string // name in verdicts, in docs/gates.md and on the command line
	Asks   string // the question in one line
	Remedy string // default remedy for a failure without its own
	// Promise describes the settings of the gate in the expect of a recipe.
	Promise recipe.Promise
	// Wants reports whether the gate applies to the promises.
	Wants func(recipe.Expect) bool
	Needs Need
	// Framework marks a gate on GPUs that runs the wheel beside its framework, in
	// [Subject.Framework].
	Framework bool
	check     func(context.Context, Subject) verdict.Verdict
}

// All lists every gate in the order in which they run, by increasing need.
func All() []Gate {
	return []Gate{
		wheelFormat,
		changes,
		pythonSource,
		artifactSize,
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
		launcherGate,
		allreduce2,
		trainStep,
		upstreamTests,
		upstreamTestsFull,
		collectives,
		transport,
		busbw,
		gpuAllreduce,
		gpuTrainStep,
		gpuUpstreamTests,
		Reproducible,
	}
}

// Reproducible is the gate for a cell built twice. The caller compares the builds
// itself, because one artifact is not enough to answer.
var Reproducible = Gate{
	Name:   "reproducible",
	Asks:   "a second build makes the same files of the same bytes",
	Remedy: "make the build independent of the difference: the usual cause is a time, a process id, a path or an order",
	Needs:  TwoBuilds,
	Wants:  func(recipe.Expect) bool { return true },
	check: func(context.Context, Subject) verdict.Verdict {
		return verdict.Unmeasured("no second build to compare with")
	},
}

// Promises returns the settings that recipes can state for each gate.
func Promises() recipe.Promises {
	all := recipe.Promises{}
	for _, g := range All() {
		all[g.Name] = g.Promise
	}
	return all
}

// states returns the Wants of a gate that wants every artifact with settings for it.
func states(gate string) func(recipe.Expect) bool {
	return func(e recipe.Expect) bool { _, stated := e.Gates[gate]; return stated }
}

// settings returns the settings of a gate, or the zero value if there are none. [Gate.Check]
// tells of settings that cannot be read.
func settings[T any](e recipe.Expect, gate string) (of T) {
	if e.Gates.Decode(gate, &of) != nil {
		return *new(T)
	}
	return of
}

// unreadable returns an error for settings that the gate cannot read. An entry may come
// from anywhere.
func (g Gate) unreadable(e recipe.Expect) error {
	if _, stated := e.Gates[g.Name]; !stated || g.Promise.Of == nil {
		return nil
	}
	return recipe.Promises{g.Name: g.Promise}.Fault(e.Gates, g.Name)
}

// Names lists the names of all gates.
func Names() []string {
	var names []string
	for _, g := range All() {
		names = append(names, g.Name)
	}
	return names
}

// For returns all gates, and one for each setting of a gate that this version does not
// have, as in an entry of another version. It never passes, because nothing checks what
// the artifact promises there.
func For(e recipe.Expect) []Gate {
	all := All()
	for _, name := range slices.Sorted(maps.Keys(e.Gates)) {
		if !slices.ContainsFunc(all, func(g Gate) bool { return g.Name == name && g.Promise.Of != nil }) {
			all = append(all, unknown(name))
		}
	}
	return all
}

func unknown(name string) Gate {
	return Gate{
		Name:   name,
		Asks:   "the artifact keeps a promise of another version of builder",
		Remedy: "judge the artifact with the version that built it",
		Wants:  states(name),
		check: func(context.Context, Subject) verdict.Verdict {
			return verdict.Unmeasured("the artifact promises %.100q, and this version has no such gate", name)
		},
	}
}

// Wanted returns the gates that apply to the promises and need no more than most.
func Wanted(e recipe.Expect, most Need) []Gate {
	return slices.DeleteFunc(For(e), func(g Gate) bool { return g.Needs > most || !g.Wants(e) })
}

// Check runs one gate. It never panics, and an interrupted gate never passes.
func (g Gate) Check(ctx context.Context, s Subject) (v verdict.Verdict) {
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			v = g.complete(verdict.Unmeasured("the gate crashed: %v\n%s", p, debug.Stack()), start)
		}
	}()
	if err := g.unreadable(s.Expect); err != nil {
		v = verdict.Unmeasured("%v", err)
	} else if ctx.Err() == nil {
		v = g.check(ctx, s)
	}
	if v.Status == verdict.NotMeasured && g.Needs == Container && s.Box == nil {
		v.Remedy = "give the `builder run` of the cell again, with --rebuild if it takes the stored result: the gate needs the container of a run"
	}
	if err := ctx.Err(); err != nil {
		v = verdict.Unmeasured("stopped before it had a verdict: %v", err)
	}
	return g.complete(v, start)
}

// complete adds the gate's name, the time and, unless the gate passed, a remedy to a
// verdict.
func (g Gate) complete(v verdict.Verdict, start time.Time) verdict.Verdict {
	v.Gate, v.Seconds = g.Name, time.Since(start).Seconds()
	v.Evidence = cut(v.Evidence, maxEvidence)
	switch {
	case v.Status == verdict.Pass:
		v.Remedy = ""
	case v.Remedy != "":
	case v.Status == verdict.NotMeasured:
		v.Remedy = "correct the cause and run the gate again: not-measured never counts as a pass"
	default:
		v.Remedy = g.Remedy
	}
	return v
}

// sources are the files of this package: the gates and what they run.
//
//go:embed *.go scripts abi
var sources embed.FS

// Digest returns the sha256 of the gates of this program, in hex, over their source
// files without tests. A verdict of gates with another digest may be of a gate that has
// become stricter since.
var Digest = sync.OnceValue(func() string {
	sum := sha256.New()
	err := fs.WalkDir(sources, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := sources.ReadFile(path)
		if err != nil {
			return err
		}
		of := sha256.Sum256(data)
		sum.Write([]byte(path + "\x00"))
		sum.Write(of[:])
		return nil
	})
	if err != nil {
		panic(err) // embedded files can be read
	}
	return hex.EncodeToString(sum.Sum(nil))
})
