package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/gates/environment"
	"builder/internal/gates/verdict"
	"builder/internal/view/term"
)

// envFlags are the flags of gate that judge an environment in the place of a file.
func envFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "env", Usage: "judge what is installed instead of a file: which NCCL, RCCL, NVSHMEM, libibverbs, CUDA and HIP a process of `PYTHON|DIR` gets"},
		&cli.BoolFlag{Name: "run", Usage: "with --env: also import the framework in its interpreter and ask the process"},
	}
}

// judgedEnvironment is what came of one environment.
type judgedEnvironment struct {
	Path     string            `json:"path"`
	Python   string            `json:"python,omitempty"`
	Site     []string          `json:"site"`
	Verdicts []verdict.Verdict `json:"verdicts"`
}

// environmentReport is the result of gate --env --json.
type environmentReport struct {
	Schema       int                 `json:"schema"`
	Builder      string              `json:"builder"`
	Environments []judgedEnvironment `json:"environments"`
}

// gateEnvironments asks the gates on environments; one that does not pass takes none of
// the others with it.
func gateEnvironments(ctx context.Context, c *cli.Context, out printer) error {
	faults := environmentFlags(c)
	if err := errors.Join(faults...); err != nil {
		return err
	}
	report := environmentReport{Schema: 1, Builder: version, Environments: []judgedEnvironment{}}
	for _, path := range c.StringSlice("env") {
		e, err := environment.Open(ctx, path, environment.ThisHost())
		if err != nil {
			faults = append(faults, err)
			continue
		}
		e.Run = c.Bool("run")
		done := judgedEnvironment{Path: path, Python: e.Python, Site: e.Site, Verdicts: e.Judge(ctx, c.StringSlice("only"))}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		report.Environments = append(report.Environments, done)
		faults = append(faults, refusedEnvironment(done))
	}
	if c.Bool("json") {
		return errors.Join(append([]error{printJSON(out, report)}, faults...)...)
	}
	for _, e := range report.Environments {
		out.say("%s", e.Path)
		var rows [][]string
		for _, v := range e.Verdicts {
			rows = append(rows, []string{v.Gate, v.Status.String(), fmt.Sprintf("%.1fs", v.Seconds), v.Evidence})
		}
		if len(rows) > 0 {
			term.Table(out.stdout, term.Width(out.stdout), []string{"gate", "status", "time", "evidence"}, rows)
		}
	}
	return errors.Join(faults...)
}

// environmentFlags refuses what says nothing of an environment.
func environmentFlags(c *cli.Context) (faults []error) {
	if c.Args().Present() {
		faults = append(faults, diag.Errorf(diag.Usage, "--env and PATH are two questions: %q", c.Args().First()).WithHint("ask for each by itself"))
	}
	for _, name := range []string{"expect", "entry", "attach", "gpus", "log"} {
		if c.IsSet(name) {
			faults = append(faults, diag.Errorf(diag.Usage, "--%s says nothing of an environment", name).WithHint("leave it out"))
		}
	}
	for _, path := range c.StringSlice("env") {
		if name, _, ok := strings.Cut(path, "="); ok && strings.ToUpper(name) == name && !strings.Contains(name, "/") {
			faults = append(faults, diag.Errorf(diag.Usage, "--env: %q is a variable, and no environment", path).WithHint("--set-env %s sets it for the programs of --gpus", path))
		}
	}
	for _, name := range c.StringSlice("only") {
		if !slices.Contains(environment.Names(), name) {
			faults = append(faults, diag.Errorf(diag.Usage, "--only: no gate on an environment is called %q", name).WithHint("%s", diag.DidYouMean(name, environment.Names())))
		}
	}
	return faults
}

// refusedEnvironment is the error for verdicts that keep an environment back.
func refusedEnvironment(e judgedEnvironment) error {
	if len(e.Verdicts) == 0 {
		return diag.Errorf(diag.Gate, "%s: no gate has anything to look at: no NCCL, RCCL, NVSHMEM, libibverbs, CUDA or HIP run time is installed, and nothing needs one", e.Path).
			WithHint("name the environment that the framework is installed in")
	}
	var faults []error
	for _, v := range e.Verdicts {
		if v.Refuses() {
			faults = append(faults, diag.Errorf(diag.Gate, "%s: gate %s: %s: %s", e.Path, v.Gate, v.Status, v.Evidence).WithHint("%s", v.Remedy))
		}
	}
	return errors.Join(faults...)
}
