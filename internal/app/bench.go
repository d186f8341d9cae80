package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/machine/bench"
	"builder/internal/machine/locate"
	"builder/internal/view/benchpage"
	"builder/internal/view/progress"
)

// hostRoot is the root directory for this host's libraries and programs.
const hostRoot = "/"

// A BenchRequest names the libraries to compare and how to compare them.
type BenchRequest struct {
	bench.Plan // look fills in libraries, programs and GPUs

	Libraries   []string // LABEL=PATH
	Tests       string
	GPUCount    int // 0: all
	Collectives []string
	TimeLimit   time.Duration
	Out         string
	Command     string // the command line of builder
}

// A BenchRun is a planned comparison.
type BenchRun struct {
	*Session
	BenchRequest
	plan bench.Plan
	host bench.Host
}

// PlanBench finds the libraries, programs and GPUs of the request. It unpacks wheels
// below scratch.
func PlanBench(ctx context.Context, s *Session, r BenchRequest, scratch string) (*BenchRun, error) {
	plan, host, err := r.look(ctx, scratch)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(r.Out, 0o755); err != nil {
		return nil, diag.Errorf(diag.Usage, "--out: %w", err)
	}
	return &BenchRun{s, r, plan, host}, nil
}

// Measure measures with run and writes the results so far after every round.
func (b *BenchRun) Measure(ctx context.Context, run bench.Runner) (bench.Result, error) {
	w := &benchWatch{progress: b.Display, rounds: b.plan.Rounds, begun: bench.Result{
		Builder: b.Version, Command: b.Command, Host: b.host, Started: time.Now(),
	}, dir: b.Out}
	if b.TimeLimit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, b.TimeLimit, fmt.Errorf("the time limit of %v is over", b.TimeLimit))
		defer cancel()
	}
	measured, failures := b.plan.Measure(ctx, run, w)
	measured = w.complete(measured)
	measured.Finished = time.Now()
	if err := writeBench(b.Out, measured); err != nil {
		return bench.Result{}, errors.Join(failures, err)
	}
	return measured, failures
}

// look finds the libraries, programs and GPUs of the request. It unpacks wheels below
// scratch.
func (r BenchRequest) look(ctx context.Context, scratch string) (bench.Plan, bench.Host, error) {
	p := r.Plan
	libraries, soname, libraryFault := locate.Libraries(r.Libraries, scratch, hostRoot)
	tests, testsFault := locate.Tests(r.Tests, soname, r.Out, hostRoot)
	var programs []bench.Program
	var programFault error
	if tests != "" {
		programs, programFault = locate.Programs(tests, r.Collectives, soname, filepath.Join(scratch, "tests"))
	}
	p.Libraries, p.Programs, p.GPUs = libraries, programs, r.GPUCount
	var found locate.GPUs
	var gpuFault error
	if len(p.Launcher) == 0 { // a launcher knows its hosts
		found, gpuFault = locate.FindGPUs(ctx, r.GPUCount, r.Env)
		p.GPUs, p.Limit = found.Count, found.Limit
	}
	if err := errors.Join(libraryFault, testsFault, programFault, gpuFault); err != nil {
		return p, found.Host, err
	}
	return p, found.Host, p.Validate()
}

// writeBench replaces the result and the page. It renders the page from the encoded
// result, so it equals the page of --render.
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
	return WritePage(filepath.Join(dir, "bench.html"), r)
}

// WritePage replaces the page of a result.
func WritePage(path string, r bench.Result) error {
	page, err := benchpage.Render(r)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, page)
}

// maxResult limits the size of a result file. Six libraries, six collectives and a
// hundred rounds take about 20 MB.
const maxResult = 256 << 20

// ReadBench reads the result of an earlier measurement.
func ReadBench(path string) (bench.Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return bench.Result{}, err
	}
	defer f.Close()
	content, err := regular.All(f, maxResult)
	if err != nil {
		return bench.Result{}, err
	}
	return bench.Decode(content)
}

// benchWatch shows the sweeps and writes the result after each round.
type benchWatch struct {
	progress *progress.Display
	begun    bench.Result
	dir      string
	rounds   int
	spent    time.Duration // in the sweeps so far
	last     bench.Turn
}

var _ bench.Events = (*benchWatch)(nil)

// Began implements [bench.Events].
func (w *benchWatch) Began(s bench.Turn) {
	w.progress.Start(w.round(s), w.name(s))
	w.progress.Line(w.round(s), w.left(s))
}

// Ended implements [bench.Events].
func (w *benchWatch) Ended(s bench.Turn, d time.Duration, err error) {
	w.spent += d
	w.progress.Done(w.round(s), w.name(s), d, false, err)
	s.Done, s.Left = s.Done+1, s.Left-1
	w.last = s
}

// Saved implements [bench.Events]. It prints a failed write as a note.
// [BenchRun.Measure] returns an error if the last write fails.
func (w *benchWatch) Saved(r bench.Result) {
	w.progress.Note("%s", w.left(w.last))
	if err := writeBench(w.dir, w.complete(r)); err != nil {
		w.progress.Note("%v", err)
	}
}

// complete adds the facts known before the run. The driver reports more about the GPUs
// than the programs do, so its report replaces theirs.
func (w *benchWatch) complete(r bench.Result) bench.Result {
	r.Builder, r.Command, r.Started = w.begun.Builder, w.begun.Command, w.begun.Started
	if len(w.begun.Host.GPUs) > 0 {
		r.Host = w.begun.Host
	}
	return r
}

func (w *benchWatch) round(s bench.Turn) string {
	if s.Round == 0 {
		return "warm-up"
	}
	return fmt.Sprintf("round %d of %d", s.Round, w.rounds)
}

func (w *benchWatch) name(s bench.Turn) string { return s.Program.Collective + " " + s.Library.Label }

// left estimates the remaining time from the mean of the sweeps so far.
func (w *benchWatch) left(s bench.Turn) string {
	said := fmt.Sprintf("%d of %d sweeps done", s.Done, s.Done+s.Left)
	if s.Done == 0 {
		return said
	}
	rest := w.spent / time.Duration(s.Done) * time.Duration(s.Left)
	return fmt.Sprintf("%s, about %v left", said, rest.Round(time.Second))
}
