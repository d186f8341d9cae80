package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/base/shell"
	"builder/internal/machine/bench"
	"builder/internal/machine/nccltests"
	"builder/internal/view/benchpage"
	"builder/internal/view/term"
)

// runTests runs one sweep; the scripts of the command line put another in its
// place.
var runTests bench.Runner = nccltests.Run

const benchDescription = `Runs the same sweeps of nccl-tests or rccl-tests for each library on the GPUs of
this host. The libraries take turns in every round, and each is compared with the
first one by the rounds in which both were measured. A library whose values are
wrong is not compared, and exit 6.

PATH is libnccl.so.2 or librccl.so.1, a directory that holds it, a wheel, or the
directory of a cell. DIR/bench.json is the result, DIR/bench.html shows it.`

func benchCommand(args []string, out printer) *cli.Command {
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
			o, err := readBenchOptions(c)
			if err != nil {
				return err
			}
			o.command = commandLine(args)
			return doBench(c.Context, o, out)
		},
	}
}

// commandLine is how the tool was called, as a shell would take it.
func commandLine(args []string) string {
	return diag.Redact(shell.Line(append([]string{"builder"}, args[1:]...)...))
}

// doBench measures, and writes what it knows after every round.
func doBench(ctx context.Context, o benchOptions, out printer) error {
	scratch, err := os.MkdirTemp("", "builder-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	plan, host, err := o.plan(ctx, scratch)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return diag.Errorf(diag.Usage, "--out: %w", err)
	}
	progress, err := o.display.begin(ctx, out)
	if err != nil {
		return err
	}
	return progress.end(measure(ctx, o, plan, host, progress, out))
}

func measure(ctx context.Context, o benchOptions, plan bench.Plan, host bench.Host, progress *display, out printer) error {
	w := &benchWatch{progress: progress.Display, rounds: plan.Rounds, begun: bench.Result{
		Builder: version, Command: o.command, Host: host, Started: time.Now(),
	}, dir: o.out}
	if o.timeLimit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeLimit, fmt.Errorf("the time limit of %v is over", o.timeLimit))
		defer cancel()
	}
	measured, failures := plan.Measure(ctx, runTests, w)
	progress.Close()
	measured = w.complete(measured)
	measured.Finished = time.Now()
	if err := writeBench(o.out, measured); err != nil {
		return errors.Join(failures, err)
	}
	return errors.Join(failures, printBench(o, measured, out))
}

func printBench(o benchOptions, r bench.Result, out printer) error {
	if r.Stopped != "" {
		out.note("stopped: %s", r.Stopped)
	}
	if o.json {
		content, err := bench.Encode(r)
		if err != nil {
			return err
		}
		_, err = io.WriteString(out.stdout, term.ShownJSON(string(content)))
		return err
	}
	for _, table := range []func(bench.Result) ([]string, [][]string){bench.Table, bench.SummaryTable} {
		if header, rows := table(r); len(rows) > 0 {
			term.Table(out.stdout, term.Width(out.stdout), header, rows)
			out.say("")
		}
	}
	for _, said := range r.OtherReleases() {
		out.say("%s", said)
	}
	out.say("%s", filepath.Join(o.out, "bench.json"))
	out.say("%s", filepath.Join(o.out, "bench.html"))
	return nil
}

// writeBench replaces the result and the page. The page is made from what was
// written, so that it is the one that --render makes.
func writeBench(dir string, r bench.Result) error {
	content, err := bench.Encode(r)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(dir, "bench.json"), content); err != nil {
		return err
	}
	if r, err = bench.Decode(content); err != nil {
		return err
	}
	return writePage(filepath.Join(dir, "bench.html"), r)
}

func writePage(path string, r bench.Result) error {
	page, err := benchpage.Render(r)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, page)
}

// maxResult bounds a result that is read. Six libraries, six collectives and a
// hundred rounds are about 20 MB.
const maxResult = 256 << 20

// renderBench makes the page of a result that was measured before.
func renderBench(c *cli.Context, out printer) error {
	for _, f := range benchFlags() {
		if name := f.Names()[0]; name != "render" && name != "out" && c.IsSet(name) {
			return diag.Errorf(diag.Usage, "--render and --%s contradict each other", name).
				WithHint("--render measures nothing; --out says where bench.html goes, beside FILE otherwise")
		}
	}
	path := c.String("render")
	r, err := readBench(path)
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
	if err := writePage(page, r); err != nil {
		return err
	}
	out.say("%s", page)
	return nil
}

func readBench(path string) (bench.Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return bench.Result{}, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxResult+1))
	switch {
	case err != nil:
		return bench.Result{}, err
	case len(content) > maxResult:
		return bench.Result{}, fmt.Errorf("it is larger than %d bytes", maxResult)
	}
	return bench.Decode(content)
}
