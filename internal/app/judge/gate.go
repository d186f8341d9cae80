// Package judge holds the verbs that examine artifacts and their statements: gate, bench,
// verify, diagnose and key sign.
package judge

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"builder/internal/app/build"
	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/files/inspect"
	"builder/internal/gates/device"
	"builder/internal/gates/environment"
	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/machine/gpu"
	"builder/internal/publishing/publish"
	"builder/internal/publishing/subject"
	"builder/internal/view/progress"
)

// A GateRequest names the artifacts to judge and the gates to run.
type GateRequest struct {
	Paths  []string // files, directories of cells, or addresses as in [publish.Digests]
	Only   []string // names of gates; empty runs all applicable gates
	Expect []inspect.Expectation
	Entry  string         // file of the promise; "" is the file beside the artifact
	Attach bool           // sign the verdicts and write them beside the artifact
	Log    string         // file for the output of the programs; "" is none
	Device *DeviceRequest // nil runs no gate on GPUs

	Insecure bool // use plain HTTP for other hosts too
}

// Gated holds the verdicts on one artifact.
type Gated struct {
	artifact.Artifact
	Promise  string            `json:"promise,omitempty"` // the file of the promise
	Is       *inspect.Report   `json:"is,omitempty"`      // facts of the artifact, if requested or if it has no promise
	Verdicts []verdict.Verdict `json:"verdicts"`
	Attached map[string]bool   `json:"-"` // gates whose verdict was attached earlier
}

// gateSchema is the version of the format of gate --json. New fields do not change it.
const gateSchema = 1

// A GateReport holds the verdicts on all artifacts.
type GateReport struct {
	Schema    int       `json:"schema"`
	Builder   string    `json:"builder"`
	Host      *gpu.Host `json:"host,omitempty"`
	Artifacts []Gated   `json:"artifacts"`
}

// Judge runs the gates on every artifact. A refused artifact does not stop the others, but
// one that is not found does.
// The report is empty if nothing was judged.
func Judge(ctx context.Context, s build.Setup, r GateRequest) (GateReport, error) {
	shared, err := openGateRun(s, r)
	if err != nil {
		return GateReport{}, err
	}
	defer shared.close()
	subjects, err := shared.subjects(ctx)
	if err == nil {
		err = shared.prepareGPUs(ctx)
	}
	if err != nil {
		return GateReport{}, err
	}
	report := GateReport{Schema: gateSchema, Builder: s.Version, Host: shared.host}
	var errs []error
	for _, s := range subjects {
		done, err := shared.judge(ctx, s)
		if ctx.Err() != nil {
			return GateReport{}, context.Cause(ctx)
		}
		if err == nil {
			at := done.Path
			if _, pulled := shared.pulled[at]; pulled {
				at = done.Name // the copy is a temporary file
			}
			err = verdict.Refusals(at, done.Verdicts)
			if len(done.Verdicts) == 0 {
				err = diag.Errorf(diag.Gate, "%s: no gate ran", done.Name).WithHint("leave out --only, or give --gpus")
			}
		}
		report.Artifacts, errs = append(report.Artifacts, done), append(errs, err)
	}
	return report, errors.Join(errs...)
}

// gateRun is the state shared by all artifacts of an invocation.
type gateRun struct {
	build.Setup
	options  GateRequest
	gpus     *device.Setup // nil without --gpus
	host     *gpu.Host     // nil without --gpus and if the search for GPUs failed
	with     []string      // wheels to install beside the artifact
	trust    signing.Trust
	pulled   map[string]publish.Digest // by the path of the artifact
	scratch  string
	log      io.Writer
	closeLog func() error
}

// judge runs the gates on one artifact and adds the verdicts attached earlier. With
// --attach it attaches the new verdicts.
func (b *gateRun) judge(ctx context.Context, s subject.Subject) (Gated, error) {
	done := Gated{Artifact: s.Artifact, Promise: s.Promise, Verdicts: []verdict.Verdict{}, Attached: map[string]bool{}}
	said, err := b.loadAttestations(&s)
	if done.Promise = s.Promise; err != nil {
		return done, diag.Errorf(diag.Gate, "%s: %w", attest.Dir(s.Artifact.Path), err).
			WithHint("%s", attest.Remedy(err))
	}
	if s.Doubted && b.options.Attach {
		doubt := gate.Doubted(s.Promise)
		return done, diag.Errorf(diag.Gate, "--attach: %s: verdicts by this promise are not attached", doubt.Evidence).WithHint("%s", doubt.Remedy)
	}
	if p := said.Provenance; p != nil && b.options.Attach && s.Key != p.Definition.Internal.Key {
		return done, diag.Errorf(diag.Usage, "--attach: %s was built from another entry than the one that judges it: verdicts by another promise do not count", s.Artifact.Name).
			WithHint("give the directory of its cell, or the entry.json of its cell with --entry")
	}
	gpus, err := b.unpackLibrary(s)
	if err != nil {
		return done, err
	}
	var key signing.Key
	if b.options.Attach { // before the gates, which take minutes
		if key, err = b.Keys.Signing(); err != nil {
			return done, err
		}
	}
	framework, err := b.framework(ctx, s)
	if err != nil {
		return done, err
	}
	tests, err := b.testsTree(ctx, s, framework)
	if err != nil {
		return done, err
	}
	inspected := s.Inspect(ctx, len(b.options.Expect) > 0)
	if inspected && s.Fault == nil {
		done.Is = &s.Is
	}
	newer := slices.Concat(b.askGates(ctx, s, gpus, framework, tests), gate.Expected(s.Is, s.Fault, b.options.Expect))
	if inspected && s.Is.Kind == "wheel" && len(b.options.Only) == 0 {
		newer = append(newer, gate.KnownFaults(s.Artifact.Path, s.Is)...)
	}
	switch {
	case s.Doubted:
		newer = append(newer, gate.Doubted(s.Promise))
	case s.Promise == "" && len(b.options.Expect)+len(b.options.Only) == 0 && !names(newer, s.Fault):
		newer = append(newer, gate.Unpromised(s.Fault))
	}
	shown := newer
	if gpus != nil && !slices.ContainsFunc(newer, gate.UsesGPUs) {
		shown = append(slices.Clone(newer), gate.Unused(gpus)) // not attached, since it says nothing about the artifact
	}
	attached := verdict.WaiveAll(said.Verdicts(), s.Expect.Waivers, time.Now())
	if len(b.options.Only) == 0 {
		shown = withoutBlind(shown, attached)
	}
	others := verdict.Others(attached, shown)
	for _, v := range others {
		done.Attached[v.Gate] = true
	}
	done.Verdicts = slices.Concat(shown, others)
	if !b.options.Attach || ctx.Err() != nil {
		return done, nil
	}
	if now, err := artifact.Of(s.Artifact.Path, ""); err != nil || now.SHA256 != s.Artifact.SHA256 {
		return done, errors.Join(err, diag.Errorf(diag.Gate, "%s changed during the gates: the verdicts were not attached", s.Artifact.Path))
	}
	round := attest.NewTestResult(newer, s.Key, b.Version, b.host, time.Now())
	if err := (attest.Sealer{Key: key}).AddRound(s.Artifact, round); err != nil {
		return done, err
	}
	return done, b.attachThere(ctx, s.Artifact, key)
}

// names reports whether the evidence of a verdict names the fault of a file.
func names(verdicts []verdict.Verdict, fault error) bool {
	return fault != nil && slices.ContainsFunc(verdicts, func(v verdict.Verdict) bool {
		return strings.Contains(v.Evidence, fault.Error())
	})
}

// loadAttestations reads the attestations of an artifact and decides from the signed entry whether
// its promise can be trusted.
func (b *gateRun) loadAttestations(s *subject.Subject) (attest.Bundle, error) {
	said, err := attest.Read(s.Artifact, b.trust)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	signed := ""
	if said.Provenance != nil {
		signed = said.Provenance.Definition.Internal.Entry.Key()
	}
	if note := s.Vouch(signed, len(b.options.Expect) > 0); note != "" {
		b.Keys.Note("%s", note)
	}
	return said, err
}

// withoutBlind leaves out new verdicts that are not measured where a measurement is
// attached: a host that has no source tree keeps the verdict of the host that built.
func withoutBlind(now, attached []verdict.Verdict) []verdict.Verdict {
	return slices.DeleteFunc(slices.Clone(now), func(v verdict.Verdict) bool {
		return v.Status == verdict.NotMeasured && slices.ContainsFunc(attached, func(a verdict.Verdict) bool {
			return a.Gate == v.Gate && a.Status != verdict.NotMeasured
		})
	})
}

// askGates runs the chosen gates in order. A gate named by --only that checks no promise of the
// artifact is not measured.
func (b *gateRun) askGates(ctx context.Context, s subject.Subject, gpus *device.Setup, framework gate.Box, tests string) []verdict.Verdict {
	unpacked := gate.NewUnpacked()
	defer unpacked.Close()
	judged := gate.Subject{Artifact: s.Artifact.Path, Beside: s.Beside, Expect: s.Expect, Unpacked: unpacked, Device: gpus, Framework: framework, TestsTree: tests, Source: s.Source(b.Keys.Home)}
	if s.Promise == "" {
		judged.Expect.Packages = inspect.Promised(b.options.Expect)
	}
	var asked []gate.Gate
	var unasked []verdict.Verdict
	for _, g := range gate.For(s.Expect) {
		if g.Needs > gate.File && g.Needs < gate.GPUs && g.Wants(s.Expect) && len(b.options.Only) == 0 {
			b.Keys.Note("gate %s was not run: it needs the container of builder run", g.Name)
		}
		switch {
		case !b.chosen(g, s):
		case g.Name == "wheel-format" && s.Is.Kind == "library":
			unasked = append(unasked, verdict.Verdict{Gate: g.Name, Evidence: "a library has no form of a wheel to judge", Remedy: "leave it out of --only: the facts of a library are judged with --expect"})
		case g.Wants(s.Expect):
			asked = append(asked, g)
		default:
			unasked = append(unasked, unpromised(g, s))
		}
	}
	verdicts, _ := run.AskGates(ctx, gateEvents{b.Display, s.Artifact.Name, b.log}, asked, judged, time.Now()) // the caller checks ctx
	return append(verdicts, unasked...)
}

// gateEvents shows the gates on an artifact.
type gateEvents struct {
	display *progress.Display
	name    string
	log     io.Writer
}

// StepStarted implements [run.Events].
func (e gateEvents) StepStarted(step string) io.Writer {
	e.display.Start(e.name, step)
	return e.log
}

// StepDone implements [run.Events].
func (e gateEvents) StepDone(step string, d time.Duration, cached bool, err error) {
	e.display.Done(e.name, step, d, cached, err)
}

// chosen reports whether a gate runs. With --only the named gates run. Otherwise the
// gates that read the file run and, with --gpus, the gates that need GPUs.
func (b *gateRun) chosen(g gate.Gate, s subject.Subject) bool {
	if len(b.options.Only) > 0 {
		return slices.Contains(b.options.Only, g.Name)
	}
	atHand := g.Needs == gate.File || g.Needs == gate.GPUs && b.gpus != nil
	return atHand && s.Is.Kind != "library" && g.Wants(s.Expect)
}

// unpromised returns the verdict of a gate that has no promise of the artifact to check.
func unpromised(g gate.Gate, s subject.Subject) verdict.Verdict {
	if s.Promise == "" {
		return verdict.Verdict{Gate: g.Name, Evidence: "the promise of the artifact is unknown", Remedy: "give the directory of its cell, or its entry.json with --entry"}
	}
	return verdict.Verdict{Gate: g.Name, Evidence: "the artifact has no promise for this gate to check", Remedy: "leave it out of --only, or state the promise in the recipe's expect"}
}

// JudgeEnvironment runs the gates on an environment. The report is empty if its
// interpreter gave no answer.
func JudgeEnvironment(ctx context.Context, version, path string) (GateReport, error) {
	e, err := environment.Ask(ctx, path)
	if err != nil {
		return GateReport{}, err
	}
	done := Gated{Artifact: artifact.Artifact{Name: path, Path: path}, Verdicts: e.Judge()}
	err = verdict.Refusals(path, done.Verdicts)
	if len(done.Verdicts) == 0 {
		err = diag.Errorf(diag.Gate, "%s: nothing to check: it has no NCCL, RCCL, NVSHMEM, CUDA or HIP run time, and no library that needs one", path).
			WithHint("name the environment with the framework")
	}
	return GateReport{Schema: gateSchema, Builder: version, Artifacts: []Gated{done}}, err
}
