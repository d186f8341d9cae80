package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/files/inspect"
	"builder/internal/gates/device"
	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/machine/gpu"
	"builder/internal/machine/locate"
	"builder/internal/publishing/subject"
)

// A GateRequest says which artifacts are judged, and by which gates.
type GateRequest struct {
	Paths  []string
	Only   []string // gates; none asks all that apply
	Expect []inspect.Expectation
	Entry  string         // file of the promise; "" is the one beside the artifact
	Attach bool           // sign the verdicts and put them beside the artifact
	Log    string         // file of what the programs print; "" is none
	Device *DeviceRequest // nil asks no gate on GPUs
}

// Gated is what came of one artifact.
type Gated struct {
	artifact.Artifact
	Promise  string            `json:"promise,omitempty"` // the file that says what it promises
	Is       *inspect.Report   `json:"is,omitempty"`      // what it is, where that was asked or nothing promises it
	Verdicts []verdict.Verdict `json:"verdicts"`
	Attached map[string]bool   `json:"-"` // gates whose verdict was there before
}

// gateSchema is the number of the format of gate --json. A field may be added
// without a new one.
const gateSchema = 1

// A GateReport is what came of all artifacts.
type GateReport struct {
	Schema    int       `json:"schema"`
	Builder   string    `json:"builder"`
	Host      *gpu.Host `json:"host,omitempty"`
	Artifacts []Gated   `json:"artifacts"`
}

// Judge asks the gates of every artifact; one that does not pass takes none of the
// others with it. The report is empty where nothing was judged.
func Judge(ctx context.Context, s *Session, r GateRequest, subjects []subject.Subject) (GateReport, error) {
	shared, err := openGateRun(ctx, s, r)
	if err != nil {
		return GateReport{}, err
	}
	defer shared.close()
	report := GateReport{Schema: gateSchema, Builder: s.Version, Host: shared.host}
	var faults []error
	for _, s := range subjects {
		done, err := shared.judge(ctx, s)
		if ctx.Err() != nil {
			return GateReport{}, context.Cause(ctx)
		}
		if err == nil {
			err = refused(done)
		}
		report.Artifacts, faults = append(report.Artifacts, done), append(faults, err)
	}
	return report, errors.Join(faults...)
}

// gateRun is what all artifacts of an invocation share.
type gateRun struct {
	*Session
	options GateRequest
	host    *gpu.Host // nil without --gpus, and where nothing is known of them
	tests   string    // directory of the programs
	against locate.Baseline
	fault   error // why the host's GPUs are not known
	trust   signing.Trust
	scratch string
	log     io.Writer
	close   func()
}

// judge asks the gates of one artifact, adds what is attached to it, and attaches
// the sum where that was asked for.
func (b *gateRun) judge(ctx context.Context, s subject.Subject) (Gated, error) {
	done := Gated{Artifact: s.Artifact, Promise: s.Promise, Verdicts: []verdict.Verdict{}, Attached: map[string]bool{}}
	said, err := b.vouch(&s)
	if done.Promise = s.Promise; err != nil {
		return done, diag.Errorf(diag.Gate, "%s: %w", attest.Dir(s.Artifact.Path), err).
			WithHint("--trust FILE counts the signatures of another host; what speaks of other bytes is to be removed, and the gates asked again with --attach")
	}
	gpus, release, err := b.setup(s)
	if err != nil {
		return done, err
	}
	defer release()
	inspected := s.Inspect(ctx, len(b.options.Expect) > 0)
	if inspected && s.Fault == nil {
		done.Is = &s.Is
	}
	newer := slices.Concat(b.ask(ctx, s, gpus), gate.Expected(s.Is, s.Fault, b.options.Expect))
	if inspected && s.Is.Kind == "wheel" && len(b.options.Only) == 0 {
		newer = append(newer, gate.KnownFaults(s.Artifact.Path, s.Is)...)
	}
	switch {
	case s.Doubted:
		newer = append(newer, gate.Doubted(s.Promise))
	case s.Promise == "" && len(b.options.Expect)+len(b.options.Only) == 0:
		newer = append(newer, gate.Unpromised(s.Is, s.Fault))
	}
	shown := newer
	if gpus != nil && !slices.ContainsFunc(newer, gate.UsesGPUs) {
		shown = append(slices.Clone(newer), gate.Unused(gpus)) // it says nothing of the artifact that could be attached
	}
	done.add(shown, verdict.WaiveAll(said.Verdicts(), s.Expect.Waivers, time.Now()))
	if !b.options.Attach || ctx.Err() != nil {
		return done, nil
	}
	if now, err := artifact.Of(s.Artifact.Path, ""); err != nil || now.SHA256 != s.Artifact.SHA256 {
		return done, errors.Join(err, diag.Errorf(diag.Gate, "%s was changed while it was judged: the verdicts are not attached", s.Artifact.Path))
	}
	key, err := b.SigningKey()
	if err != nil {
		return done, err
	}
	return done, attest.Sealer{Key: key}.AddRound(s.Artifact, attest.NewTestResult(newer, s.Key, b.Version, b.host, time.Now()))
}

// vouch reads what is said about an artifact, and with that says what its promise is
// worth.
func (b *gateRun) vouch(s *subject.Subject) (attest.Bundle, error) {
	said, err := attest.Read(s.Artifact, b.trust)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	signed := ""
	if said.Provenance != nil {
		signed = said.Provenance.Definition.Internal.Entry.Key()
	}
	if note := s.Vouch(signed, len(b.options.Expect) > 0); note != "" {
		b.Note("%s", note)
	}
	return said, err
}

// add shows the answers of now, and what is attached of the gates that were not
// asked.
func (g *Gated) add(now, attached []verdict.Verdict) {
	asked := map[string]bool{}
	for _, v := range now {
		asked[v.Gate] = true
	}
	others := verdict.Others(attached, asked)
	for _, v := range others {
		g.Attached[v.Gate] = true
	}
	g.Verdicts = slices.Concat(now, others)
}

// ask asks the chosen gates in their order.
func (b *gateRun) ask(ctx context.Context, s subject.Subject, gpus *device.Setup) []verdict.Verdict {
	unpacked := gate.NewUnpacked()
	defer unpacked.Close()
	judged := gate.Subject{Artifact: s.Artifact.Path, Beside: s.Beside, Expect: s.Expect, Unpacked: unpacked, Device: gpus, Log: b.log, Source: s.Source(b.Home)}
	if s.Promise == "" {
		judged.Expect.Packages = inspect.Promised(b.options.Expect)
	}
	var verdicts []verdict.Verdict
	for _, g := range gate.All() {
		if g.Needs > gate.File && g.Needs < gate.GPUs && g.Wants(s.Expect) && len(b.options.Only) == 0 {
			b.Note("gate %s is not asked: it needs the container of builder run", g.Name)
		}
		if !b.chosen(g, s, gpus) || ctx.Err() != nil {
			continue
		}
		b.Display.Start(s.Artifact.Name, "gate "+g.Name)
		start := time.Now()
		v := b.one(ctx, g, s, judged)
		var err error
		if v.Refuses() {
			err = fmt.Errorf("%s: %s", v.Status, v.Evidence)
		}
		b.Display.Done(s.Artifact.Name, "gate "+g.Name, time.Since(start), false, err)
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// chosen reports whether a gate is asked: those that were named, or those that
// read the file, and with --gpus those that run it.
func (b *gateRun) chosen(g gate.Gate, s subject.Subject, gpus *device.Setup) bool {
	if len(b.options.Only) > 0 {
		return slices.Contains(b.options.Only, g.Name)
	}
	atHand := g.Needs == gate.File || g.Needs == gate.GPUs && gpus != nil
	return atHand && s.Is.Kind != "library" && g.Wants(s.Expect)
}

// one asks a gate, unless there is nothing that it could judge by.
func (b *gateRun) one(ctx context.Context, g gate.Gate, s subject.Subject, judged gate.Subject) verdict.Verdict {
	if g.Wants(s.Expect) {
		return g.Check(ctx, judged).Waive(s.Expect.Waivers, time.Now())
	}
	v := verdict.Verdict{Gate: g.Name, Status: verdict.NotMeasured, Evidence: "the artifact promises nothing that this gate could judge", Remedy: "leave it out of --only, or state the promise in the recipe's expect"}
	if s.Promise == "" {
		v.Evidence, v.Remedy = "nobody says what the artifact promises", "give the directory of its cell, or its entry.json with --entry"
	}
	return v
}

// refused is the error for verdicts that do not let an artifact pass.
func refused(done Gated) error {
	if len(done.Verdicts) == 0 {
		return diag.Errorf(diag.Gate, "%s: no gate looked at it", done.Name).WithHint("leave out --only, or give --gpus")
	}
	return verdict.Refusals(done.Name, done.Verdicts)
}
