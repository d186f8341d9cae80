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

// hostRoot is below which libraries and programs of this host lie.
const hostRoot = "/"

// A BenchRequest says which libraries are compared, and how.
type BenchRequest struct {
	bench.Plan // without what has to be looked for first

	Libraries   []string // LABEL=PATH
	Tests       string
	GPUCount    int // 0: all
	Collectives []string
	TimeLimit   time.Duration
	Out         string
	Command     string // how the tool was called
}

// A BenchRun is a comparison at work.
type BenchRun struct {
	*Session
	BenchRequest
	plan bench.Plan
	host bench.Host
}

// PlanBench looks for what the request names, and takes wheels apart below scratch.
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

// Measure measures with run, and writes what it knows after every round.
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

// look looks for what the request names, and takes wheels apart below scratch.
func (r BenchRequest) look(ctx context.Context, scratch string) (bench.Plan, bench.Host, error) {
	p := r.Plan
	libraries, soname, libraryFault := locate.Libraries(r.Libraries, scratch, hostRoot)
	tests, testsFault := locate.Tests(r.Tests, soname, r.Out, hostRoot)
	var programs []bench.Program
	var programFault error
	if tests != "" {
		programs, programFault = locate.Programs(tests, r.Collectives, soname, filepath.Join(scratch, "tests"))
	}
	found, gpuFault := locate.FindGPUs(ctx, r.GPUCount, r.Env)
	p.Libraries, p.Programs = libraries, programs
	p.GPUs, p.Limit = found.Count, found.Limit
	if err := errors.Join(libraryFault, testsFault, programFault, gpuFault); err != nil {
		return p, found.Host, err
	}
	return p, found.Host, p.Validate()
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

// maxResult bounds a result that is read. Six libraries, six collectives and a
// hundred rounds are about 20 MB.
const maxResult = 256 << 20

// ReadBench reads a result that was measured before.
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

// benchWatch shows the sweeps and keeps what each round adds.
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

// Saved implements [bench.Events]. A file that cannot be written now is said; the
// last one that cannot is an error.
func (w *benchWatch) Saved(r bench.Result) {
	w.progress.Note("%s", w.left(w.last))
	if err := writeBench(w.dir, w.complete(r)); err != nil {
		w.progress.Note("%v", err)
	}
}

// complete adds what was known before. What the driver says of the GPUs is more
// than what the programs do.
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

// left estimates the rest by the mean of what was.
func (w *benchWatch) left(s bench.Turn) string {
	said := fmt.Sprintf("%d of %d sweeps done", s.Done, s.Done+s.Left)
	if s.Done == 0 {
		return said
	}
	rest := w.spent / time.Duration(s.Done) * time.Duration(s.Left)
	return fmt.Sprintf("%s, about %v left", said, rest.Round(time.Second))
}
