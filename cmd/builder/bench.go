package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/bench"
	"builder/internal/benchpage"
	"builder/internal/diag"
	"builder/internal/gpu"
	"builder/internal/nccltests"
	"builder/internal/report"
	"builder/internal/term"
)

// runTests runs one sweep.
var runTests bench.Runner = cannotRunYet

func cannotRunYet(context.Context, nccltests.Sweep) (nccltests.Measured, error) {
	return nccltests.Measured{}, diag.Errorf(diag.Unexpected, "this build cannot run nccl-tests yet")
}

const benchDescription = `Runs the same sweeps of nccl-tests for each library on the GPUs of this host. The
libraries take turns in every round, and each is compared with the first one by
the rounds in which both were measured. A library whose values are wrong is not
compared, and exit 6.

PATH is libnccl.so.2 or librccl.so.1, a directory that holds it, or a wheel.
DIR/bench.json is the result, DIR/bench.html shows it.

Examples:
   builder bench --tests nccl_tests-2.17.6-py3-none-linux_x86_64.whl \
      --library vendor=nvidia_nccl_cu13-2.28.9-py3-none-manylinux_2_18_x86_64.whl \
      --library ours=out/nccl/nccl-2.29.7-py3-none-linux_x86_64.whl
   builder bench --render out/bench.json`

// warmup is how many iterations of a size are not timed.
const warmup = 5

func benchFlags() []cli.Flag {
	return []cli.Flag{
		jsonFlag(),
		&cli.GenericFlag{Name: "library", Value: &texts{}, Usage: "measure the library `LABEL=PATH`; again for each, the first is what the others are compared with"},
		&cli.StringFlag{Name: "tests", Usage: "take the programs of nccl-tests from `DIR|WHEEL`"},
		&cli.StringFlag{Name: "gpus", Value: "all", Usage: "use `N` GPUs of this host, or all"},
		&cli.StringFlag{Name: "collectives", Value: "all_reduce,all_gather,broadcast,reduce_scatter,alltoall,sendrecv", Usage: "measure the collectives `A,B,…`"},
		&cli.StringFlag{Name: "min-bytes", Value: "8", Usage: "begin with `SIZE`: 8, 64K, 1M, 4G"},
		&cli.StringFlag{Name: "max-bytes", Value: "4G", Usage: "end with `SIZE`"},
		&cli.IntFlag{Name: "factor", Value: 2, Usage: "multiply the size by `N` from one to the next"},
		&cli.IntFlag{Name: "rounds", Value: 5, Usage: "measure `N` rounds, after one to warm up; fewer than 5 give no confidence interval"},
		&cli.IntFlag{Name: "iterations", Value: 20, Usage: "time `N` iterations of each size"},
		&cli.GenericFlag{Name: "env", Value: &texts{}, Usage: "set `KEY=VALUE` for every sweep: NCCL_NVLS_ENABLE=0"},
		&cli.DurationFlag{Name: "time-limit", Usage: "stop after `TIME` and write what was measured"},
		&cli.DurationFlag{Name: "sweep-limit", Value: 10 * time.Minute, Usage: "a sweep that takes longer than `TIME` hangs"},
		&cli.StringFlag{Name: "out", Value: "out", Usage: "write bench.json and bench.html to `DIR`"},
		&cli.StringFlag{Name: "render", Usage: "measure nothing: make bench.html anew, from `FILE`"},
	}
}

func benchCommand(args []string, out printer) *cli.Command {
	return &cli.Command{
		Name: "bench", Usage: "compare libraries with nccl-tests on the GPUs of this host", OnUsageError: usageError,
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

// texts are the values of a flag that may be there several times. Unlike those of
// cli's own they may hold a comma.
type texts []string

// Set implements [cli.Generic].
func (t *texts) Set(text string) error {
	*t = append(*t, text)
	return nil
}

// String implements [cli.Generic].
func (t *texts) String() string { return strings.Join(*t, " ") }

// commandLine is how the tool was called, as a shell would take it.
func commandLine(args []string) string {
	words := []string{"builder"}
	for _, arg := range args[1:] {
		if strings.ContainsFunc(arg, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./,:@%", r)
		}) || arg == "" {
			arg = quoted(arg)
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
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
	progress := term.NewProgress(out.stderr, term.Detect(out.stderr, os.Getenv))
	defer progress.Close()
	w := &benchWatch{progress: progress, rounds: plan.Rounds, begun: bench.Result{
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
	if o.json {
		content, err := bench.Encode(r)
		if err != nil {
			return err
		}
		_, err = out.stdout.Write(content)
		return err
	}
	for _, table := range []func(bench.Result) ([]string, [][]string){bench.Table, bench.SummaryTable} {
		if header, rows := table(r); len(rows) > 0 {
			term.Table(out.stdout, term.Width(out.stdout), header, rows)
			out.say("")
		}
	}
	if r.Stopped != "" {
		out.note("stopped: %s", r.Stopped)
	}
	out.say("%s", filepath.Join(o.out, "bench.json"))
	out.say("%s", filepath.Join(o.out, "bench.html"))
	return nil
}

// writeBench replaces the result and the page that shows it.
func writeBench(dir string, r bench.Result) error {
	content, err := bench.Encode(r)
	if err != nil {
		return err
	}
	if err := report.Replace(filepath.Join(dir, "bench.json"), content); err != nil {
		return err
	}
	return writePage(filepath.Join(dir, "bench.html"), r)
}

func writePage(path string, r bench.Result) error {
	page, err := benchpage.Render(r)
	if err != nil {
		return err
	}
	return report.Replace(path, page)
}

// maxResult bounds a result that is read: six libraries, all collectives and a
// hundred rounds are 30 MB.
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

// benchWatch shows the sweeps and keeps what each round adds.
type benchWatch struct {
	progress *term.Progress
	begun    bench.Result
	dir      string
	rounds   int
	spent    time.Duration // in the sweeps so far
	last     bench.Step
}

// Began implements [bench.Events].
func (w *benchWatch) Began(s bench.Step) {
	w.progress.Start(w.round(s), w.name(s))
	w.progress.Line(w.round(s), w.left(s))
}

// Ended implements [bench.Events].
func (w *benchWatch) Ended(s bench.Step, d time.Duration, err error) {
	w.spent += d
	w.progress.Done(w.round(s), w.name(s), d, false, err)
	s.Done, s.Left = s.Done+1, s.Left-1
	w.last = s
}

// Saved implements [bench.Events]. A file that cannot be written now is said; the
// last one that cannot is an error.
func (w *benchWatch) Saved(r bench.Result) {
	w.progress.Note("%s", w.left(w.last))
	if err := writeBench(w.dir, w.complete(r)); err != nil {
		w.progress.Note("%v", err)
	}
}

func (w *benchWatch) complete(r bench.Result) bench.Result {
	r.Builder, r.Command, r.Host, r.Started = w.begun.Builder, w.begun.Command, w.begun.Host, w.begun.Started
	return r
}

func (w *benchWatch) round(s bench.Step) string {
	if s.Round == 0 {
		return "warm-up"
	}
	return fmt.Sprintf("round %d of %d", s.Round, w.rounds)
}

func (w *benchWatch) name(s bench.Step) string { return s.Program.Collective + " " + s.Library.Label }

// left estimates the rest by the mean of what was.
func (w *benchWatch) left(s bench.Step) string {
	said := fmt.Sprintf("%d of %d sweeps done", s.Done, s.Done+s.Left)
	if s.Done == 0 {
		return said
	}
	rest := w.spent / time.Duration(s.Done) * time.Duration(s.Left)
	return fmt.Sprintf("%s, about %v left", said, rest.Round(time.Second))
}

// benchOptions is what the flags of bench say.
type benchOptions struct {
	bench.Plan // without what has to be looked for first

	libraries   []string // LABEL=PATH
	tests       string
	gpus        int // 0: all
	collectives []string
	timeLimit   time.Duration
	out         string
	json        bool
	command     string
}

func readBenchOptions(c *cli.Context) (benchOptions, error) {
	o := benchOptions{
		Plan: bench.Plan{
			Factor: c.Int("factor"), Rounds: c.Int("rounds"), Iterations: c.Int("iterations"),
			Warmup: warmup, Timeout: c.Duration("sweep-limit"), Env: map[string]string{},
		},
		libraries: *c.Generic("library").(*texts), tests: c.String("tests"), collectives: list(c.String("collectives")),
		timeLimit: c.Duration("time-limit"), out: c.String("out"), json: c.Bool("json"),
	}
	var faults []error
	size := func(flag string) int64 {
		bytes, err := bench.ParseSize(c.String(flag))
		if err != nil {
			faults = append(faults, diag.Errorf(diag.Usage, "--%s: %w", flag, err))
		}
		return bytes
	}
	o.MinBytes, o.MaxBytes = size("min-bytes"), size("max-bytes")
	for _, setting := range *c.Generic("env").(*texts) {
		name, value, ok := strings.Cut(setting, "=")
		if !ok || name == "" {
			faults = append(faults, diag.Errorf(diag.Usage, "--env: %q is not KEY=VALUE", setting))
		}
		o.Env[name] = value
	}
	if text := c.String("gpus"); text != "all" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			faults = append(faults, diag.Errorf(diag.Usage, "--gpus: %q is neither a number nor all", text))
		}
		o.gpus = n
	}
	if len(o.libraries) == 0 {
		faults = append(faults, diag.Errorf(diag.Usage, "--library is missing: what shall be measured?").
			WithHint("--library vendor=WHEEL --library ours=DIR"))
	}
	if o.tests == "" {
		faults = append(faults, diag.Errorf(diag.Usage, "--tests is missing: where are the programs of nccl-tests?").
			WithHint("`builder run nccl-tests` makes a wheel of them"))
	}
	return o, errors.Join(append(faults, checkOut(o.out))...)
}

// plan looks for what the options name, and takes wheels apart below scratch.
func (o benchOptions) plan(ctx context.Context, scratch string) (bench.Plan, bench.Host, error) {
	p := o.Plan
	var faults []error
	for i, arg := range o.libraries {
		l, err := findLibrary(arg, filepath.Join(scratch, "library-"+strconv.Itoa(i)))
		p.Libraries, faults = append(p.Libraries, l), append(faults, err)
	}
	programs, err := findPrograms(o.tests, o.collectives, filepath.Join(scratch, "tests"))
	p.Programs, faults = programs, append(faults, err)
	gpus, host, err := findGPUs(ctx, o.gpus)
	p.GPUs, faults = gpus, append(faults, err)
	if err := errors.Join(faults...); err != nil {
		return p, host, err
	}
	return p, host, p.Validate()
}

// findGPUs says how many GPUs take part, and what the driver knows of them.
func findGPUs(ctx context.Context, wanted int) (int, bench.Host, error) {
	h, err := gpu.Probe(ctx)
	switch {
	case err != nil && wanted > 0:
		return wanted, bench.Host{}, nil // the programs say what they ran on
	case err != nil:
		return 0, bench.Host{}, diag.Errorf(diag.Usage, "--gpus all: counting the GPUs of this host: %w", err).WithHint("say how many: --gpus 2")
	case wanted > len(h.GPUs):
		return 0, bench.Host{}, diag.Errorf(diag.Usage, "--gpus: %d are wanted, this host has %d", wanted, len(h.GPUs))
	case wanted == 0:
		wanted = len(h.GPUs)
	}
	return wanted, bench.Host{GPUs: h.GPUs[:wanted], Driver: h.Driver, Link: h.Link(wanted)}, nil
}
