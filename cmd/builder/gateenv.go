package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/judge"
	"builder/internal/base/diag"
	"builder/internal/view/term"
)

// envFlag is the flag of gate for judging an environment instead of files.
func envFlag() cli.Flag {
	return &cli.StringFlag{Name: "env", Usage: "run the interpreter of the environment `PYTHON|DIR` instead, and check which NCCL, RCCL, NVSHMEM, CUDA and HIP its processes load"}
}

// gateEnvironment runs the gates on an environment and prints the verdicts.
func gateEnvironment(c *cli.Context, out term.Printer) error {
	if err := errors.Join(environmentFlags(c)...); err != nil {
		return err
	}
	done, err := judge.JudgeEnvironment(c.Context, version, c.String("env"))
	if done.Schema == 0 {
		return err
	}
	return errors.Join(out.Print(c.Bool("json"), done, func() { show.Gated(out, done) }), err)
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
