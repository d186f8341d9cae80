package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/app/catalogue"
	"builder/internal/app/show"
	"builder/internal/base/diag"
	"builder/internal/base/shell"
	"builder/internal/machine/bench"
	"builder/internal/machine/nccltests"
	"builder/internal/view/progress"
	"builder/internal/view/term"
)

// runTests runs one sweep; tests replace it.
var runTests bench.Runner = nccltests.Run

const benchDescription = `Runs the same sweeps of nccl-tests or rccl-tests for each library on the GPUs of
this host. The libraries take turns in every round. Each is compared with the first
over the rounds in which both were measured. A library with wrong values is not
compared, and the exit code is 6.

PATH is libnccl.so.2 or librccl.so.1, a directory with one of them, a wheel, or the
directory of a cell. DIR/bench.json holds the result, DIR/bench.html shows it.`

func benchCommand(args []string, out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "bench", Usage: "compare libraries with nccl-tests or rccl-tests on the GPUs of this host", OnUsageError: usageError,
		Description: benchDescription, Flags: benchFlags(), HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			if err := unexpected(c, 0); err != nil {
				return err
			}
			if c.IsSet("render") {
				return renderBench(c, out)
			}
			r, err := readBench(c)
			in, err2 := openSession(c, catalogue.Catalogue{}, out)
			if err := errors.Join(err, err2); err != nil {
				return err
			}
			r.Command = commandLine(args)
			return doBench(c, in, r, out)
		},
	}
}

// commandLine returns the command line of builder, quoted for a shell and without
// secrets.
func commandLine(args []string) string {
	return diag.Redact(shell.Line(append([]string{"builder"}, args[1:]...)...))
}

// doBench measures and prints the results.
func doBench(c *cli.Context, in invocation, r app.BenchRequest, out term.Printer) error {
	scratch, err := os.MkdirTemp("", "builder-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	ready, err := app.PlanBench(c.Context, in.Session, r, scratch)
	if err != nil {
		return err
	}
	return in.show(c.Context, func(d *progress.Shown) error {
		measured, err := ready.Measure(c.Context, runTests)
		d.Close()
		if measured.Finished.IsZero() {
			return err
		}
		return errors.Join(err, show.Bench(out, r.Out, measured, c.Bool("json")))
	})
}

// renderBench renders the page of an earlier measurement.
func renderBench(c *cli.Context, out term.Printer) error {
	for _, f := range benchFlags() {
		if name := f.Names()[0]; name != "render" && name != "out" && c.IsSet(name) {
			return diag.Errorf(diag.Usage, "--render and --%s contradict each other", name).
				WithHint("--render only writes bench.html again: into --out, or beside FILE")
		}
	}
	path := c.String("render")
	r, err := app.ReadBench(path)
	if err != nil {
		return diag.Errorf(diag.Usage, "--render: %s: %w", path, err).WithHint("FILE is the bench.json of an earlier run")
	}
	dir := filepath.Dir(path)
	if c.IsSet("out") {
		dir = c.String("out")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return diag.Errorf(diag.Usage, "--out: %w", err)
		}
	}
	page := filepath.Join(dir, "bench.html")
	if err := app.WritePage(page, r); err != nil {
		return err
	}
	out.Say("%s", page)
	return nil
}
