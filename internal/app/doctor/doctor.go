// Package doctor says what a host has and lacks for building and for running
// what was built: the engine and what it needs, memory and disk, the places that
// inputs come from, GPUs, the fabric between them, and the libraries that are
// there already.
//
// A [Check] is a value in the list [Checks]. It judges what packages host, fabric
// and gpu read of a host. What could not be looked at is unknown, and what is
// unknown has not passed.
package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"builder/internal/machine/host"
)

// Schema is the number of the format of a [Report] as JSON.
const Schema = 1

// A Verdict is the answer of a check. The zero value is [Unknown].
type Verdict int

// The verdicts.
const (
	Unknown Verdict = iota // it could not be looked at; Found says why
	OK
	Warn // it works, and worse than it could
	Fail // it does not work
	None // it is not there, and nothing asks for it
)

var verdictNames = []string{"unknown", "ok", "warn", "fail", "none"}

// String returns the verdict as it stands in reports.
func (v Verdict) String() string { return verdictNames[v] }

// MarshalText implements [encoding.TextMarshaler].
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// A Purpose is what a check is for.
type Purpose string

// The purposes, in the order of the report.
const (
	Engine    Purpose = "engine"    // an engine that runs builds
	Build     Purpose = "build"     // room for them
	Network   Purpose = "network"   // where inputs come from
	GPU       Purpose = "gpu"       // what the result runs on
	Fabric    Purpose = "fabric"    // how GPUs of several hosts talk
	Libraries Purpose = "libraries" // what is installed already
)

// A Check is one question about a host.
type Check struct {
	Name  string
	For   Purpose
	About string // what it asks, in a few words
	How   string // where it looks
	// needed says whether the host cannot do the work where the check fails.
	needed func(Work) bool
	look   func(context.Context, *exam) Finding
}

// A Finding is what a check saw. Texts come from the host and are not cleaned.
type Finding struct {
	Verdict Verdict  `json:"verdict"`
	Found   string   `json:"found"`
	Remedy  string   `json:"remedy,omitempty"` // what to do; empty where nothing is to be done
	Detail  []string `json:"detail,omitempty"` // lines that say more, in a fixed-width font
}

// A Result is a check with what it found.
type Result struct {
	Name   string  `json:"check"`
	For    Purpose `json:"for"`
	About  string  `json:"about"`
	How    string  `json:"how"`
	Needed bool    `json:"needed"` // for the chosen work
	Finding
}

// A Report is what all checks found, in their order.
type Report struct {
	Schema  int      `json:"schema"`
	Builder string   `json:"builder"`
	Recipe  string   `json:"recipe,omitempty"`
	Cell    string   `json:"cell,omitempty"` // the one that the recipe prefers
	Checks  []Result `json:"checks"`
}

// Lacking names the checks that failed and that the chosen work needs.
func (r Report) Lacking() []string {
	var names []string
	for _, c := range r.Checks {
		if c.Needed && c.Verdict == Fail {
			names = append(names, c.Name)
		}
	}
	return names
}

// Examine runs all checks. When ctx ends, those that are left are unknown.
func Examine(ctx context.Context, h host.Host, w Work) Report {
	r := Report{Schema: Schema}
	if w.Recipe != nil {
		r.Recipe, r.Cell = w.Recipe.Name, w.Recipe.Cell
	}
	e := newExam(h, w)
	for _, c := range Checks() {
		f := unknown("the examination was interrupted")
		if ctx.Err() == nil {
			f = c.look(ctx, e)
		}
		needed := c.needed(w)
		if c.For == Engine && !needed && (f.Verdict == Fail || f.Verdict == Warn) {
			f = none("not needed: %s", f.Found) // another engine does the work
		}
		r.Checks = append(r.Checks, Result{c.Name, c.For, c.About, c.How, needed, f})
	}
	return r
}

// Cannot asks what a run asks before it fetches anything: the checks of the engine and
// of room that the work needs, without the network. It returns those that failed.
func Cannot(ctx context.Context, h host.Host, w Work) []Result {
	var failed []Result
	e := newExam(h, w)
	for _, c := range Checks() {
		if c.For != Engine && c.For != Build || c.Name == askedByClient || !c.needed(w) || ctx.Err() != nil {
			continue
		}
		if f := c.look(ctx, e); f.Verdict == Fail {
			failed = append(failed, Result{c.Name, c.For, c.About, c.How, true, f})
		}
	}
	return failed
}

// askedByClient is the check that starts the client program, which a run does anyway.
const askedByClient = "engine-version"

// The findings, by verdict.

func unknown(format string, args ...any) Finding { return found(Unknown, format, args...) }
func ok(format string, args ...any) Finding      { return found(OK, format, args...) }
func warn(format string, args ...any) Finding    { return found(Warn, format, args...) }
func fail(format string, args ...any) Finding    { return found(Fail, format, args...) }
func none(format string, args ...any) Finding    { return found(None, format, args...) }

func found(v Verdict, format string, args ...any) Finding {
	return Finding{Verdict: v, Found: clip(fmt.Sprintf(format, args...))}
}

// each looks at several things of a kind. The finding has the worst of their
// verdicts, and says what each is.
func each(names []string, look func(name string) Finding) Finding {
	badness := []Verdict{None, OK, Warn, Unknown, Fail}
	var all Finding
	var texts, remedies []string
	for i, name := range names {
		f := look(name)
		if i == 0 || slices.Index(badness, f.Verdict) > slices.Index(badness, all.Verdict) {
			all.Verdict = f.Verdict
		}
		if len(names) > 1 && !strings.Contains(f.Found, name) {
			f.Found = name + ": " + f.Found
		}
		texts = append(texts, f.Found)
		if f.Remedy != "" && !slices.Contains(remedies, f.Remedy) {
			remedies = append(remedies, f.Remedy)
		}
	}
	all.Found, all.Remedy = clip(strings.Join(texts, "; ")), strings.Join(remedies, "; ")
	return all
}

// maxText bounds what a finding says in one line: hosts are hostile.
const maxText = 400

func clip(text string) string {
	if runes := []rune(text); len(runes) > maxText {
		return string(runes[:maxText]) + "…"
	}
	return text
}

// remedy returns the finding with what to do about it.
func (f Finding) remedy(format string, args ...any) Finding {
	f.Remedy = clip(fmt.Sprintf(format, args...))
	return f
}

// detail returns the finding with lines that say more.
func (f Finding) detail(lines ...string) Finding {
	f.Detail = slices.Clone(lines[:min(len(lines), maxDetail)])
	for i, line := range f.Detail {
		f.Detail[i] = clip(line)
	}
	return f
}

// maxDetail bounds the lines of a detail; sixteen GPUs and NICs take forty.
const maxDetail = 200
