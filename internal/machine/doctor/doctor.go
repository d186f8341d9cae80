// Package doctor answers two questions about a host: will a run work here, and will NCCL
// use the GPUs and the network. It examines the engine and its requirements and the
// disk, then GPUs, RDMA devices and installed libraries.
//
// A [Check] is an item of the list [Checks]. It judges facts of packages host and gpu, and
// the kernel's lists of PCI and RDMA devices. If a fact cannot be read, the verdict is
// [Unknown], and Unknown is not a pass.
package doctor

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"builder/internal/machine/gpu"
	"builder/internal/machine/host"
)

// Schema is the version of the JSON format of a [Report].
const Schema = 1

// A Verdict is the result of a check. The zero value is [Unknown].
type Verdict int

// The verdicts.
const (
	Unknown Verdict = iota // the fact could not be read; Found gives the reason
	OK
	Warn // it works, but worse than possible
	Fail // it does not work
	None // it is absent and not required
)

var verdictNames = []string{"unknown", "ok", "warn", "fail", "none"}

// String returns the verdict as used in reports.
func (v Verdict) String() string { return verdictNames[v] }

// MarshalText implements [encoding.TextMarshaler].
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// A Purpose is the group of a check.
type Purpose string

// The purposes, in the order of the report.
const (
	Engine    Purpose = "engine"    // an engine for builds
	Build     Purpose = "build"     // the disk
	GPU       Purpose = "gpu"       // GPUs for the result
	Fabric    Purpose = "fabric"    // communication between the GPUs of several hosts
	Libraries Purpose = "libraries" // installed libraries
)

// A Check examines one property of a host.
type Check struct {
	Name  string
	For   Purpose
	About string // the property, in a few words
	How   string // the files and commands it reads
	// needed reports whether a failure of the check prevents the work.
	needed func(Work) bool
	look   func(context.Context, *exam) Finding
}

// A Finding is the result of a check. Its texts come from the host and are not cleaned.
type Finding struct {
	Verdict Verdict  `json:"verdict"`
	Found   string   `json:"found"`
	Remedy  string   `json:"remedy,omitempty"` // empty if there is nothing to do
	Detail  []string `json:"detail,omitempty"` // further lines for a fixed-width font
}

// A Result is a check with its finding.
type Result struct {
	Name   string  `json:"check"`
	For    Purpose `json:"for"`
	About  string  `json:"about"`
	How    string  `json:"how"`
	Needed bool    `json:"needed"` // for the chosen work
	Finding
}

// A Report holds the results of all checks in order.
type Report struct {
	Schema  int      `json:"schema"`
	Builder string   `json:"builder"`
	Recipe  string   `json:"recipe,omitempty"`
	Cell    string   `json:"cell,omitempty"` // the recipe's preferred cell
	Checks  []Result `json:"checks"`
}

// Lacking names the failed checks that the chosen work needs.
func (r Report) Lacking() []string {
	var names []string
	for _, c := range r.Checks {
		if c.Needed && c.Verdict == Fail {
			names = append(names, c.Name)
		}
	}
	return names
}

// Examine runs all checks. When ctx ends, the remaining checks are unknown.
func Examine(ctx context.Context, h host.Host, w Work) Report {
	r := Report{Schema: Schema, Checks: run(ctx, h, w, Checks())}
	if w.Recipe != nil {
		r.Recipe, r.Cell = w.Recipe.Name, w.Recipe.Cell
	}
	return r
}

// Cannot runs the checks that a run makes before it fetches anything: those of the engine
// and of the disk. It returns the failed ones. It does not ask an engine for its version,
// because a run starts the client anyway.
func Cannot(ctx context.Context, h host.Host, w Work) []Result {
	w.Engine.Version = nil
	early := slices.DeleteFunc(Checks(), func(c Check) bool { return c.For != Engine && c.For != Build || !c.needed(w) })
	return slices.DeleteFunc(run(ctx, h, w, early), func(r Result) bool { return r.Verdict != Fail })
}

func run(ctx context.Context, h host.Host, w Work, checks []Check) []Result {
	var results []Result
	e := newExam(ctx, h, w)
	for _, c := range checks {
		f := unknown("the check was interrupted")
		if ctx.Err() == nil {
			f = c.look(ctx, e)
		}
		needed := c.needed(w)
		if c.For == Engine && !needed && (f.Verdict == Fail || f.Verdict == Warn) {
			f = none("not needed: %s", f.Found) // another engine does the work
		}
		results = append(results, Result{c.Name, c.For, c.About, c.How, needed, f})
	}
	return results
}

// Constructors of findings, one per verdict.

func unknown(format string, args ...any) Finding { return found(Unknown, format, args...) }
func ok(format string, args ...any) Finding      { return found(OK, format, args...) }
func warn(format string, args ...any) Finding    { return found(Warn, format, args...) }
func fail(format string, args ...any) Finding    { return found(Fail, format, args...) }
func none(format string, args ...any) Finding    { return found(None, format, args...) }

func found(v Verdict, format string, args ...any) Finding {
	return Finding{Verdict: v, Found: fmt.Sprintf(format, args...)}
}

// remedy returns the finding with a remedy.
func (f Finding) remedy(format string, args ...any) Finding {
	f.Remedy = fmt.Sprintf(format, args...)
	return f
}

// detail returns the finding with further lines.
func (f Finding) detail(lines ...string) Finding {
	f.Detail = lines
	return f
}

// An exam is an examination of a host. It reads each fact that several checks share once.
type exam struct {
	host.Host
	work Work

	tools    func() (gpu.Host, error)            // the answer of the vendors' tools
	pci      func() pciTree                      // the tree of PCI devices
	linked   func() (map[string][]string, error) // libraries in the linker's cache: paths by soname
	packages func() []string                     // package directories of the default python3
}

func newExam(ctx context.Context, h host.Host, w Work) *exam {
	e := &exam{Host: h, work: w}
	e.tools = sync.OnceValues(func() (gpu.Host, error) { return gpu.Find(ctx, e.Run) })
	e.pci = sync.OnceValue(func() pciTree { return readPCI(e.Host) })
	e.linked = sync.OnceValues(func() (map[string][]string, error) { return e.readLinkerCache(ctx) })
	e.packages = sync.OnceValue(func() []string { return e.readPackages(ctx) })
	return e
}
