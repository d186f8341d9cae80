package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/judge"
	"builder/internal/base/diag"
	"builder/internal/files/inspect"
	"builder/internal/gates/gate"
	"builder/internal/plan/catalogue"
	"builder/internal/publishing/publish"
	"builder/internal/view/progress"
	"builder/internal/view/term"
)

func gateCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "gate", Usage: "run gates on a finished artifact on this host", ArgsUsage: "PATH|ADDRESS…",
		Description: "PATH is the directory of a cell (out/<cell>), a wheel or a library. The gates compare it\n" +
			"with the entry.json beside it, if a trusted key signed that, with --entry, or with\n" +
			"--expect. Without any of these the table only prints facts about the file. The gates\n" +
			"that read the file always run, gates on GPUs with --gpus. The command needs no engine.\n" +
			"The exit code is 0 only if every gate passed. With --env the gates run the interpreter of\n" +
			"an environment and check what its processes load.\n\n" +
			"ADDRESS is a published cell, " + publish.Digests + ". The\n" +
			"command copies what trusted keys signed, and --attach adds the verdicts to the registry.\n" +
			"--programs, --against and --with take such an address too.\n\n" +
			"Facts for --expect: " + strings.Join(inspect.Names(), ", ") + ".",
		Flags: gateFlags(),
		Action: func(c *cli.Context) error {
			if c.IsSet("env") {
				return gateEnvironment(c, out)
			}
			in, err := readInvocation(c, catalogue.Catalogue{}, out)
			r, err2 := readGate(c)
			if err := errors.Join(err, err2); err != nil {
				return err
			}
			return in.show(c.Context, func(d *progress.Display) error {
				done, err := judge.Judge(c.Context, in.Setup, r)
				d.Close()
				return printResult(c, out, done, done.Schema != 0, err, show.Gated)
			})
		},
	}
}

func gateFlags() []cli.Flag {
	return slices.Concat([]cli.Flag{
		jsonFlag(),
		&cli.StringSliceFlag{Name: "only", Usage: "run these gates only: `GATE,…`"},
		&cli.StringSliceFlag{Name: "expect", Usage: "require these facts: `NAME=VALUE,…`, such as framework=tensorflow,nccl=rccl,arch=gfx90a"},
		&cli.StringFlag{Name: "entry", Usage: "compare with `FILE`, the entry.json of the artifact's cell, without checking its signature"},
		&cli.BoolFlag{Name: "attach", Usage: "sign the verdicts and write them to ARTIFACT.attestations beside the artifact, or add them to ADDRESS"},
	}, append(signFlags(), trustFlag()), []cli.Flag{
		&cli.StringFlag{Name: "log", Usage: "write the output of the programs to `FILE`"},
		insecureFlag(),
		progressFlag(),
		&cli.StringFlag{Name: "env", Usage: "run the interpreter of the environment `PYTHON|DIR` instead, and check which NCCL, RCCL, NVSHMEM, CUDA and HIP its processes load"},
	}, deviceFlags())
}

func readGate(c *cli.Context) (judge.GateRequest, error) {
	if !c.Args().Present() {
		return judge.GateRequest{}, diag.Errorf(diag.Usage, "%s: name the directory of a cell, or a wheel", c.Command.HelpName).
			WithHint("%s out/nccl-2.29.7+cuda13.0-verbs-sm_90 --gpus all --programs DIR", c.Command.HelpName)
	}
	r := judge.GateRequest{Paths: c.Args().Slice(), Only: c.StringSlice("only"), Attach: c.Bool("attach"), Entry: c.String("entry"), Log: c.String("log"), Insecure: c.Bool("insecure")}
	var errs []error
	for _, name := range r.Only {
		switch {
		case name == gate.Reproducible.Name:
			errs = append(errs, diag.Errorf(diag.Usage, "--only: the gate %s compares two builds, and this command has one", name).WithHint("builder verify out/CELL --rebuild --attach"))
		case !slices.Contains(gate.Names(), name):
			errs = append(errs, diag.Errorf(diag.Usage, "--only: unknown gate %q", name).WithHint("%s", diag.DidYouMean(name, gate.Names())))
		}
	}
	var err1, err2 error
	r.Expect, err1 = inspect.ParseExpectations(c.StringSlice("expect"))
	r.Device, err2 = readDevice(c)
	return r, errors.Join(append(errs, err1, err2)...)
}

// gateEnvironment runs the gates on an environment and prints the verdicts.
func gateEnvironment(c *cli.Context, out term.Printer) error {
	if err := errors.Join(environmentFlags(c)...); err != nil {
		return err
	}
	done, err := judge.JudgeEnvironment(c.Context, version, c.String("env"))
	return printResult(c, out, done, done.Schema != 0, err, show.Gated)
}

// environmentFlags rejects flags and operands that do not apply to an environment.
func environmentFlags(c *cli.Context) (errs []error) {
	if c.Args().Present() {
		errs = append(errs, diag.Errorf(diag.Usage, "--env and PATH exclude each other: %q", c.Args().First()).WithHint("run the command once for each"))
	}
	for _, name := range []string{"only", "expect", "entry", "attach", "gpus", "log"} {
		if c.IsSet(name) {
			errs = append(errs, diag.Errorf(diag.Usage, "--%s has no effect on an environment", name).WithHint("leave it out"))
		}
	}
	return errs
}
