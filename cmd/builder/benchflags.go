package main

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/base/diag"
	"builder/internal/machine/bench"
	"builder/internal/machine/curve"
	"builder/internal/machine/gpu"
)

// warmup is the number of untimed iterations per size.
const warmup = 5

func benchFlags() []cli.Flag {
	return []cli.Flag{
		jsonFlag(),
		&cli.GenericFlag{Name: "library", Value: &texts{}, Usage: "measure the library `LABEL=PATH`, or nccl or rccl for this host's own; repeatable: compares all others with the first"},
		&cli.StringFlag{Name: "tests", Usage: "take the programs of nccl-tests or rccl-tests from `DIR|WHEEL`; by default from the last run in --out, else from this host"},
		&cli.StringFlag{Name: "gpus", Value: "all", Usage: "use `N` GPUs of this host, or all"},
		launcherFlag(),
		&cli.StringFlag{Name: "collectives", Value: "all_reduce,all_gather,broadcast,reduce_scatter,alltoall,sendrecv", Usage: "measure the collectives `A,B,…`"},
		&cli.StringFlag{Name: "min-bytes", Value: "8", Usage: "begin with `SIZE`: 8, 64K, 1M, 4G"},
		&cli.StringFlag{Name: "max-bytes", Value: "4G", Usage: "end with `SIZE`"},
		&cli.IntFlag{Name: "factor", Value: 2, Usage: "multiply the size by `N` at each step"},
		&cli.IntFlag{Name: "rounds", Value: 5, Usage: "measure `N` rounds after one warm-up round; a confidence interval needs at least 5"},
		&cli.IntFlag{Name: "iterations", Value: 20, Usage: "time `N` iterations of each size"},
		&cli.GenericFlag{Name: "env", Value: &texts{}, Usage: "set `KEY=VALUE` for every sweep: NCCL_NVLS_ENABLE=0"},
		&cli.DurationFlag{Name: "time-limit", Usage: "stop after `TIME` and write the results so far"},
		&cli.DurationFlag{Name: "sweep-limit", Value: 10 * time.Minute, Usage: "treat a sweep as hung after `TIME`"},
		&cli.StringFlag{Name: "out", Value: "out", Usage: "write bench.json and bench.html to `DIR`"},
		&cli.StringFlag{Name: "render", Usage: "measure nothing: write bench.html again from `FILE`"},
		progressFlag(),
	}
}

// texts are the values of a repeatable flag. Unlike those of package cli they can
// contain a comma.
type texts []string

// Set implements [cli.Generic].
func (t *texts) Set(text string) error {
	*t = append(*t, text)
	return nil
}

// String implements [cli.Generic].
func (t *texts) String() string { return strings.Join(*t, " ") }

func readBench(c *cli.Context) (app.BenchRequest, error) {
	o := app.BenchRequest{
		Plan: bench.Plan{
			Factor: c.Int("factor"), Rounds: c.Int("rounds"), Iterations: c.Int("iterations"),
			Warmup: warmup, Timeout: c.Duration("sweep-limit"), Env: map[string]string{},
		},
		Libraries: *c.Generic("library").(*texts), Tests: c.String("tests"), Collectives: list(c.String("collectives")),
		TimeLimit: c.Duration("time-limit"), Out: c.String("out"),
	}
	var err error
	o.Launcher, err = readLauncher(c)
	errs := []error{err}
	inherited := gpu.VisibleVariables
	if len(o.Launcher) > 0 {
		inherited = handedToRanks
	}
	for _, name := range inherited {
		if value, set := os.LookupEnv(name); set {
			o.Env[name] = value
		}
	}
	size := func(flag string) int64 {
		bytes, err := curve.ParseSize(c.String(flag))
		if err != nil {
			errs = append(errs, diag.Errorf(diag.Usage, "--%s: %w", flag, err))
		}
		return bytes
	}
	o.MinBytes, o.MaxBytes = size("min-bytes"), size("max-bytes")
	for _, setting := range *c.Generic("env").(*texts) {
		name, value, ok := strings.Cut(setting, "=")
		if !ok || name == "" {
			errs = append(errs, diag.Errorf(diag.Usage, "--env: %q is not KEY=VALUE", setting))
		}
		o.Env[name] = value
	}
	if text := c.String("gpus"); text != "all" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			errs = append(errs, diag.Errorf(diag.Usage, "--gpus: %q is not a number or all", text))
		}
		o.GPUCount = n
	}
	if c.IsSet("time-limit") && o.TimeLimit <= 0 {
		errs = append(errs, diag.Errorf(diag.Usage, "--time-limit: %v is not a positive time", o.TimeLimit))
	}
	if len(o.Libraries) == 0 {
		errs = append(errs, diag.Errorf(diag.Usage, "--library is missing: name at least one library").
			WithHint("--library vendor=WHEEL --library ours=DIR"))
	}
	return o, errors.Join(append(errs, app.CheckOut(o.Out))...)
}
