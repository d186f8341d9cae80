package main

import (
	"errors"
	"slices"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/judge"
	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/plan/catalogue"
	"builder/internal/publishing/publish"
	"builder/internal/view/term"
)

func verifyCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "verify", Usage: "check signatures, provenance, digests and verdicts of an artifact", ArgsUsage: "PATH|ADDRESS…",
		Description: "PATH is the directory of a cell (out/<cell>), a wheel or an archive. Its attestations\n" +
			"are in WHEEL.attestations beside it. Only attestations signed by a trusted key count:\n" +
			"this host's key, the key of --key, and the keys of --trust. The command needs no\n" +
			"engine, except with --rebuild, which builds the cell again from its provenance and\n" +
			"compares the bytes. The exit code is 0 only if every check passed.\n\n" +
			"With --from a wheel needs no attestations beside it: they come from the place where it\n" +
			"is published, by its digest.\n\n" +
			"ADDRESS is a published cell,\n" +
			publish.Digests + ".",
		Flags: verifyFlags(),
		Action: func(c *cli.Context) error {
			in, err := readInvocation(c, catalogue.Catalogue{}, out)
			r, err2 := readVerify(c)
			if err := in.begin(c.Context, err, err2); err != nil {
				return err
			}
			done, err := judge.Verify(c.Context, in.Setup, r)
			return printEnd(c, in, done, err, show.Verified)
		},
	}
}

func verifyFlags() []cli.Flag {
	return append([]cli.Flag{
		jsonFlag(),
		trustFlag(),
		channelFlag(attest.Candidate, "require the verdicts of every gate that needs no GPU, or also of the gates on GPUs and a second build:"),
		&cli.StringSliceFlag{Name: "from", Usage: "take the attestations from `PLACE`: " + publish.Syntax[publish.Index]() + "; repeatable"},
		&cli.BoolFlag{Name: "rebuild", Usage: "build the cell again from its provenance and compare the bytes"},
		&cli.BoolFlag{Name: "attach", Usage: "with --rebuild: sign the result as the verdict of gate reproducible, and write it beside the artifact"},
		offlineFlag("with --rebuild: take everything from the store"),
		&cli.StringFlag{Name: "record", Usage: "record in `FILE` (recipes/proven.json) which cells passed, the time, the number of gates, and the level of upstream's tests"},
		&cli.StringSliceFlag{Name: "set", Usage: "with --rebuild: fetch the same bytes from another place, `source.NAME=PATH|URL`"},
		insecureFlag(),
		progressFlag(),
	}, slices.Concat(signFlags(), engineFlags())...)
}

func readVerify(c *cli.Context) (judge.VerifyRequest, error) {
	r := judge.VerifyRequest{
		Paths: c.Args().Slice(), Rebuild: c.Bool("rebuild"), Attach: c.Bool("attach"), Record: c.String("record"),
		From: c.StringSlice("from"), Insecure: c.Bool("insecure"),
	}
	if len(r.Paths) == 0 {
		return r, diag.Errorf(diag.Usage, "%s: name the directory of a cell, or a wheel", c.Command.HelpName).
			WithHint("%s out/horovod-0.28.1+rocm5.7-tf2.13.0-cp311", c.Command.HelpName)
	}
	var errs []error
	var err error
	r.Policy, err = readChannel(c)
	errs = append(errs, err)
	for _, place := range r.From {
		if _, err := publish.Open[publish.Index](place, publish.Options{}); err != nil {
			errs = append(errs, diag.Errorf(diag.Usage, "--from: %w", err))
		}
	}
	if slices.ContainsFunc(r.Paths, publish.InRegistry) && (len(r.From) > 0 || r.Attach) {
		errs = append(errs, diag.Errorf(diag.Usage, "--from and --attach have no effect on an address in a registry").
			WithHint("leave them out; to add a second build, take the cell with `builder run --from PLACE` and publish it again"))
	}
	if r.Rebuild && len(r.From) > 0 {
		errs = append(errs, diag.Errorf(diag.Usage, "--rebuild and --from exclude each other").
			WithHint("take the cell with `builder run --from PLACE`, and rebuild that"))
	}
	if r.Attach && !r.Rebuild {
		errs = append(errs, diag.Errorf(diag.Usage, "--attach has no effect without --rebuild"))
	}
	return r, errors.Join(errs...)
}
