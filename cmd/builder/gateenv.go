package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/base/diag"
	"builder/internal/gates/environment"
	"builder/internal/view/term"
)

// envFlags are the flags of gate for judging an environment instead of a file.
func envFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "env", Usage: "check the environment `PYTHON|DIR` instead of a file: which NCCL, RCCL, NVSHMEM, libibverbs, CUDA and HIP its processes load"},
		&cli.BoolFlag{Name: "run", Usage: "with --env: also import the framework in its interpreter and inspect the process"},
	}
}

// gateEnvironments runs the gates on environments and prints the verdicts.
func gateEnvironments(ctx context.Context, c *cli.Context, out term.Printer) error {
	if err := errors.Join(environmentFlags(c)...); err != nil {
		return err
	}
	done, err := app.JudgeEnvironments(ctx, &app.Session{Version: version}, c.StringSlice("env"), c.StringSlice("only"), c.Bool("run"))
	if done.Schema == 0 {
		return err
	}
	return errors.Join(out.Print(c.Bool("json"), done, func() {
		for _, e := range done.Environments {
			out.Say("%s", e.Path)
			var rows [][]string
			for _, v := range e.Verdicts {
				rows = append(rows, []string{v.Gate, v.Status.String(), fmt.Sprintf("%.1fs", v.Seconds), v.Evidence})
			}
			if len(rows) > 0 {
				out.Table([]string{"gate", "status", "time", "evidence"}, rows)
			}
		}
	}), err)
}

// environmentFlags rejects flags and operands that do not apply to environments.
func environmentFlags(c *cli.Context) (errs []error) {
	if c.Args().Present() {
		errs = append(errs, diag.Errorf(diag.Usage, "--env and PATH exclude each other: %q", c.Args().First()).WithHint("run the command once for each"))
	}
	for _, name := range []string{"expect", "entry", "attach", "gpus", "log"} {
		if c.IsSet(name) {
			errs = append(errs, diag.Errorf(diag.Usage, "--%s has no effect on an environment", name).WithHint("leave it out"))
		}
	}
	for _, path := range c.StringSlice("env") {
		if name, _, ok := strings.Cut(path, "="); ok && strings.ToUpper(name) == name && !strings.Contains(name, "/") {
			errs = append(errs, diag.Errorf(diag.Usage, "--env: %q is a variable, not an environment", path).WithHint("set it for the programs of --gpus with --set-env %s", path))
		}
	}
	for _, name := range c.StringSlice("only") {
		if !slices.Contains(environment.Names(), name) {
			errs = append(errs, diag.Errorf(diag.Usage, "--only: unknown gate on an environment %q", name).WithHint("%s", diag.DidYouMean(name, environment.Names())))
		}
	}
	return errs
}
