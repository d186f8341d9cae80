package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

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
	"builder/internal/view/progress"
	"builder/internal/view/term"
)

func gateCommand(out printer) *cli.Command {
	return &cli.Command{
		Name: "gate", Usage: "run gates on a finished artifact, here and now", ArgsUsage: "PATH…",
		Description: "PATH is the directory of a cell (out/<cell>), a wheel or a library. What it promises\n" +
			"is in the entry.json beside it if a trusted key signed that, in --entry, or in\n" +
			"--expect; of a file that promises nothing the table says what it is. The gates that read the file are always asked, those on GPUs\n" +
			"with --gpus. Nothing is fetched and no engine is needed. The exit code is 0 only if\n" +
			"every gate passed.\n\n" +
			"Facts for --expect: " + strings.Join(inspect.Names(), ", ") + ".",
		Flags:        gateFlags(),
		OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			o, err := readGateOptions(c)
			if err != nil {
				return err
			}
			return doGate(c.Context, o, out)
		},
	}
}

func gateFlags() []cli.Flag {
	return append([]cli.Flag{
		jsonFlag(),
		&cli.StringSliceFlag{Name: "only", Usage: "ask these gates and no other: `GATE,…`"},
		&cli.StringSliceFlag{Name: "expect", Usage: "say what the artifact is to be: `NAME=VALUE,…`, such as framework=tensorflow,nccl=rccl,arch=gfx90a"},
		&cli.StringFlag{Name: "entry", Usage: "judge by the promise in `FILE`, the entry.json of the artifact's cell, whoever signed it"},
		&cli.BoolFlag{Name: "attach", Usage: "sign the verdicts and put them beside the artifact, into ARTIFACT.attestations"},
		keyFlag(),
		trustFlag(),
		&cli.StringFlag{Name: "log", Usage: "write what the programs print to `FILE`"},
		progressFlag(),
	}, deviceFlags()...)
}

// gateOptions is what the flags of gate say.
type gateOptions struct {
	paths  []string
	only   []string
	expect []inspect.Expectation
	entry  string // file of the promise; "" is the one beside the artifact
	attach bool
	json   bool
	log    string
	home   string
	key    string // file of the key that signs; "" is the host's own
	trust  []string
	device *deviceOptions // nil without --gpus

	display displayOptions
}

func readGateOptions(c *cli.Context) (gateOptions, error) {
	if !c.Args().Present() {
		return gateOptions{}, diag.Errorf(diag.Usage, "%s: name the directory of a cell, or a wheel", c.Command.HelpName).
			WithHint("%s out/nccl-2.29.7+cuda13.0-verbs-sm_90 --gpus all --tests DIR", c.Command.HelpName)
	}
	o := gateOptions{
		paths: c.Args().Slice(), only: c.StringSlice("only"), attach: c.Bool("attach"),
		entry: c.String("entry"), json: c.Bool("json"), log: c.String("log"), key: c.String("key"), trust: c.StringSlice("trust"),
	}
	home, err := homeDir()
	o.home = home
	var faults []error
	for _, name := range o.only {
		if !slices.Contains(gate.Names(), name) || name == gate.Reproducible.Name {
			faults = append(faults, diag.Errorf(diag.Usage, "--only: no gate is called %q", name).WithHint("%s", diag.DidYouMean(name, gate.Names())))
		}
	}
	var err1, err2, err3 error
	o.expect, err1 = inspect.ParseExpectations(c.StringSlice("expect"))
	o.device, err2 = readDeviceOptions(c)
	o.display, err3 = readDisplay(c)
	return o, errors.Join(append(faults, err, err1, err2, err3)...)
}

// gated is what came of one artifact.
type gated struct {
	artifact.Artifact
	Promise  string            `json:"promise,omitempty"` // the file that says what it promises
	Is       *inspect.Report   `json:"is,omitempty"`      // what it is, where that was asked or nothing promises it
	Verdicts []verdict.Verdict `json:"verdicts"`
	attached map[string]bool
}

// gateSchema is the number of the format of gate --json. A field may be added
// without a new one.
const gateSchema = 1

// gateReport is the result of gate --json.
type gateReport struct {
	Schema    int       `json:"schema"`
	Builder   string    `json:"builder"`
	Host      *gpu.Host `json:"host,omitempty"`
	Artifacts []gated   `json:"artifacts"`
}

// doGate asks the gates of every artifact; one that does not pass takes none of
// the others with it.
func doGate(ctx context.Context, o gateOptions, out printer) error {
	subjects, err := subject.Find(o.paths, o.entry)
	if err != nil {
		return err
	}
	progress, err := o.display.begin(ctx, out)
	if err != nil {
		return err
	}
	return progress.end(judgeAll(ctx, o, subjects, progress, out))
}

func judgeAll(ctx context.Context, o gateOptions, subjects []subject.Subject, progress *display, out printer) error {
	shared, err := openGateRun(ctx, o, progress.Display)
	if err != nil {
		return err
	}
	defer shared.close()
	report := gateReport{Schema: gateSchema, Builder: version, Host: shared.host}
	var faults []error
	for _, s := range subjects {
		done, err := shared.judge(ctx, s)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			err = refused(done)
		}
		report.Artifacts, faults = append(report.Artifacts, done), append(faults, err)
	}
	progress.Close()
	return errors.Join(append([]error{printGated(report, o, out)}, faults...)...)
}

// gateRun is what all artifacts of an invocation share.
type gateRun struct {
	options  gateOptions
	host     *gpu.Host // nil without --gpus, and where nothing is known of them
	tests    string    // directory of the programs
	against  locate.Rival
	fault    error // why the host's GPUs are not known
	trust    signing.Trust
	scratch  string
	log      io.Writer
	progress *progress.Display
	close    func()
}

// judge asks the gates of one artifact, adds what is attached to it, and attaches
// the sum where that was asked for.
func (b *gateRun) judge(ctx context.Context, s subject.Subject) (gated, error) {
	done := gated{Artifact: s.Artifact, Promise: s.Promise, Verdicts: []verdict.Verdict{}, attached: map[string]bool{}}
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
	inspected := s.Inspect(ctx, len(b.options.expect) > 0)
	if inspected && s.Fault == nil {
		done.Is = &s.Is
	}
	newer := slices.Concat(b.ask(ctx, s, gpus), gate.Expected(s.Is, s.Fault, b.options.expect))
	switch {
	case s.Doubted:
		newer = append(newer, gate.Doubted(s.Promise))
	case s.Promise == "" && len(b.options.expect)+len(b.options.only) == 0:
		newer = append(newer, gate.Unpromised(s.Is, s.Fault))
	}
	shown := newer
	if gpus != nil && !slices.ContainsFunc(newer, gate.UsesGPUs) {
		shown = append(slices.Clone(newer), gate.Unused(gpus)) // it says nothing of the artifact that could be attached
	}
	done.add(shown, verdict.WaiveAll(said.Verdicts(), s.Expect.Waivers, time.Now()))
	if !b.options.attach || ctx.Err() != nil {
		return done, nil
	}
	if now, err := artifact.Of(s.Artifact.Path, ""); err != nil || now.SHA256 != s.Artifact.SHA256 {
		return done, errors.Join(err, diag.Errorf(diag.Gate, "%s was changed while it was judged: the verdicts are not attached", s.Artifact.Path))
	}
	key, err := signingKey(b.options.key, b.options.home, b.progress.Note)
	if err != nil {
		return done, err
	}
	return done, attest.Sealer{Key: key}.AddRound(s.Artifact, attest.NewTestResult(newer, s.Key, version, b.host, time.Now()))
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
	if note := s.Vouch(signed, len(b.options.expect) > 0); note != "" {
		b.progress.Note("%s", note)
	}
	return said, err
}

// add shows the answers of now, and what is attached of the gates that were not
// asked.
func (g *gated) add(now, attached []verdict.Verdict) {
	asked := map[string]bool{}
	for _, v := range now {
		asked[v.Gate] = true
	}
	others := verdict.Others(attached, asked)
	for _, v := range others {
		g.attached[v.Gate] = true
	}
	g.Verdicts = slices.Concat(now, others)
}

// ask asks the chosen gates in their order.
func (b *gateRun) ask(ctx context.Context, s subject.Subject, gpus *device.Setup) []verdict.Verdict {
	unpacked := gate.NewUnpacked()
	defer unpacked.Close()
	judged := gate.Subject{Artifact: s.Artifact.Path, Beside: s.Beside, Expect: s.Expect, Unpacked: unpacked, Device: gpus, Log: b.log, Source: s.Source(b.options.home)}
	if s.Promise == "" {
		judged.Expect.Packages = inspect.Promised(b.options.expect)
	}
	var verdicts []verdict.Verdict
	for _, g := range gate.All() {
		if g.Needs == gate.Container && g.Wants(s.Expect) && len(b.options.only) == 0 {
			b.progress.Note("gate %s is not asked: it needs the container of builder run", g.Name)
		}
		if !b.chosen(g, s, gpus) || ctx.Err() != nil {
			continue
		}
		b.progress.Start(s.Artifact.Name, "gate "+g.Name)
		start := time.Now()
		v := b.one(ctx, g, s, judged)
		var err error
		if v.Refuses() {
			err = fmt.Errorf("%s: %s", v.Status, v.Evidence)
		}
		b.progress.Done(s.Artifact.Name, "gate "+g.Name, time.Since(start), false, err)
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// chosen reports whether a gate is asked: those that were named, or those that
// read the file, and with --gpus those that run it.
func (b *gateRun) chosen(g gate.Gate, s subject.Subject, gpus *device.Setup) bool {
	if len(b.options.only) > 0 {
		return slices.Contains(b.options.only, g.Name)
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
func refused(done gated) error {
	if len(done.Verdicts) == 0 {
		return diag.Errorf(diag.Gate, "%s: no gate looked at it", done.Name).WithHint("leave out --only, or give --gpus")
	}
	var faults []error
	for _, v := range done.Verdicts {
		if v.Refuses() {
			faults = append(faults, diag.Errorf(diag.Gate, "%s: gate %s: %s: %s", done.Name, v.Gate, v.Status, v.Evidence).WithHint("%s", v.Remedy))
		}
	}
	return errors.Join(faults...)
}

// printFacts says what a file is.
func printFacts(is inspect.Report, out printer) {
	var rows [][]string
	for _, f := range is.Facts {
		value := strings.Join(f.Values, ", ")
		if f.Claim != "" && f.Claim != value {
			value += fmt.Sprintf(" (%s by its version)", f.Claim)
		}
		rows = append(rows, []string{f.Name, value, strings.Join(f.Because, "; ")})
	}
	term.Table(out.stdout, term.Width(out.stdout), []string{is.Kind, "is", "seen"}, rows)
}

func printGated(r gateReport, o gateOptions, out printer) error {
	if o.json {
		return printJSON(out, r)
	}
	for _, a := range r.Artifacts {
		out.say("%s sha256:%s", a.Name, a.SHA256)
		if a.Is != nil {
			printFacts(*a.Is, out)
		}
		if len(a.Verdicts) == 0 {
			continue
		}
		var rows [][]string
		for _, v := range a.Verdicts {
			from := "now"
			if a.attached[v.Gate] {
				from = "attached"
			}
			rows = append(rows, []string{v.Gate, v.Status.String(), from, fmt.Sprintf("%.1fs", v.Seconds), v.Evidence})
		}
		term.Table(out.stdout, term.Width(out.stdout), []string{"gate", "status", "from", "time", "evidence"}, rows)
	}
	return nil
}
