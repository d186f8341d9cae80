package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/proven"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/publishing/subject"
	"builder/internal/view/term"
)

func verifyCommand(out printer) *cli.Command {
	return &cli.Command{
		Name: "verify", Usage: "check signatures, provenance, digests and verdicts of an artifact", ArgsUsage: "PATH…",
		Description: "PATH is the directory of a cell (out/<cell>), a wheel or an archive. What is said about it lies in\n" +
			"WHEEL.attestations beside it; of this only what is signed by a trusted key counts: the\n" +
			"key of this host, and those of --trust. Nothing is fetched and no engine is needed,\n" +
			"except by --rebuild, which builds the cell once more from its provenance alone and\n" +
			"compares the bytes. The exit code is 0 only if nothing is wrong.",
		Flags: verifyFlags(), OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			o, err := readVerifyOptions(c)
			if err != nil {
				return err
			}
			return doVerify(c.Context, o, out)
		},
	}
}

func verifyFlags() []cli.Flag {
	return append([]cli.Flag{
		jsonFlag(),
		trustFlag(),
		&cli.StringFlag{Name: "policy", Value: string(attest.Candidate), Usage: "demand the verdicts that `POLICY` asks for: candidate (every gate that needs no GPU) or stable (those on GPUs and a second build too)"},
		&cli.BoolFlag{Name: "rebuild", Usage: "build the cell once more from its provenance and compare the bytes"},
		&cli.BoolFlag{Name: "attach", Usage: "with --rebuild: sign what it found as the verdict of gate reproducible, and put it beside the artifact"},
		keyFlag(),
		&cli.BoolFlag{Name: "offline", EnvVars: []string{"BUILDER_OFFLINE"}, Usage: "with --rebuild: take everything from the store"},
		&cli.StringFlag{Name: "record", Usage: "note in `FILE` (recipes/proven.json) which cells passed, when, and by how many gates"},
		&cli.StringSliceFlag{Name: "set", Usage: "with --rebuild: another place for the same bytes, `source.NAME=PATH|URL`"},
		progressFlag(),
	}, engineFlags()...)
}

// verifyOptions is what the flags of verify say.
type verifyOptions struct {
	options
	paths  []string
	policy attest.Policy
	attach bool
	record string
}

func readVerifyOptions(c *cli.Context) (verifyOptions, error) {
	if !c.Args().Present() {
		return verifyOptions{}, diag.Errorf(diag.Usage, "%s: name the directory of a cell, or a wheel", c.Command.HelpName).
			WithHint("%s out/horovod-0.28.1+rocm5.7-tf2.13.0-cp311-gfx90a", c.Command.HelpName)
	}
	places, err := readPlaces(c)
	var engines error
	places.engines, engines = readEngines(c, 1)
	places.json, places.trust, places.rebuild, places.key = c.Bool("json"), c.StringSlice("trust"), c.Bool("rebuild"), c.String("key")
	o := verifyOptions{
		options: places, paths: c.Args().Slice(),
		policy: attest.Policy(c.String("policy")), attach: c.Bool("attach"), record: c.String("record"),
	}
	var fault, shown error
	o.display, shown = readDisplay(c)
	if !slices.Contains(attest.Policies(), string(o.policy)) {
		fault = diag.Errorf(diag.Usage, "--policy: no policy is called %q", string(o.policy)).WithHint("%s", diag.DidYouMean(string(o.policy), attest.Policies()))
	}
	if o.attach && !o.rebuild {
		fault = errors.Join(fault, diag.Errorf(diag.Usage, "--attach: there is nothing to attach without --rebuild"))
	}
	return o, errors.Join(err, fault, shown, engines)
}

// verified is what came of one artifact.
type verified struct {
	artifact.Artifact
	Cell   string         `json:"cell,omitempty"`
	Key    string         `json:"key,omitempty"`
	Checks []attest.Check `json:"checks"`
}

// verifyReport is the result of verify --json.
type verifyReport struct {
	Schema    int           `json:"schema"`
	Policy    attest.Policy `json:"policy"`
	Artifacts []verified    `json:"artifacts"`
}

// doVerify asks about every artifact; one that is refused takes none of the others
// with it.
func doVerify(ctx context.Context, o verifyOptions, out printer) error {
	artifacts, err := artifactsOf(o.paths)
	if err != nil {
		return err
	}
	trust, err := trusted(o.trust, o.home)
	if err != nil {
		return err
	}
	if len(trust.Keys) == 0 {
		return diag.Errorf(diag.Usage, "no key is trusted: this host has made none").
			WithHint("--trust FILE names the public key of who built it; `builder key show` prints it there; `builder gate FILE` says what a wheel of somebody else is")
	}
	progress, err := o.display.begin(ctx, out)
	if err != nil {
		return err
	}
	return progress.end(verifyAll(ctx, o, artifacts, trust, progress, out))
}

func verifyAll(ctx context.Context, o verifyOptions, artifacts []artifact.Artifact, trust signing.Trust, progress *display, out printer) error {
	report := verifyReport{Schema: 1, Policy: o.policy}
	cells := proven.Cells{}
	var faults []error
	for _, a := range artifacts {
		bundle, checks := attest.Verify(a, trust, o.policy)
		if o.rebuild && attest.Passed(checks) {
			again, err := rebuildBundle(ctx, o.options, a, bundle, progress.Display)
			if err == nil && o.attach {
				err = attachRebuild(o, a, bundle, again, out)
			}
			if err != nil {
				return err
			}
			checks = append(checks, again)
		}
		v := verified{Artifact: a, Checks: checks}
		if p := bundle.Provenance; p != nil {
			v.Cell, v.Key = p.Definition.External.Cell, p.Definition.Internal.Key
		}
		if o.record != "" && attest.Passed(checks) {
			faults = append(faults, cells.Add(bundle, a.SHA256))
		}
		report.Artifacts, faults = append(report.Artifacts, v), append(faults, attest.Faults(v.Name, v.Checks))
	}
	progress.Close()
	if len(cells) > 0 {
		faults = append(faults, proven.Record(o.record, cells))
	}
	return errors.Join(append([]error{printVerified(report, o.json, out)}, faults...)...)
}

// artifactsOf measures the wheels of every path, and tells all that is wrong with
// any.
func artifactsOf(paths []string) ([]artifact.Artifact, error) {
	files, err := subject.Passed(paths)
	var artifacts []artifact.Artifact
	faults := []error{err}
	for _, file := range files {
		a, err := artifact.Of(file, "")
		artifacts, faults = append(artifacts, a), append(faults, err)
	}
	return artifacts, errors.Join(faults...)
}

func printVerified(r verifyReport, asJSON bool, out printer) error {
	if asJSON {
		return printJSON(out, r)
	}
	for _, a := range r.Artifacts {
		out.say("%s sha256:%s", a.Name, a.SHA256)
		var rows [][]string
		for _, c := range a.Checks {
			status, text := "pass", c.Seen
			if len(c.Wrong) > 0 {
				status, text = "fail", strings.Join(c.Wrong, "; ")
			}
			rows = append(rows, []string{c.Name, status, text})
		}
		term.Table(out.stdout, term.Width(out.stdout), []string{"check", "status", "seen"}, rows)
	}
	return nil
}
