package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"builder/internal/base/diag"
	"builder/internal/build/queue"
	"builder/internal/build/run"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/plan/lock"
	"builder/internal/view/progress"
	"builder/internal/view/report"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// workbench is a fake fetcher, engine, finder and sealer for a run with one failing
// cell. Each build goes on once another cell waits for its place.
type workbench struct{ fails, out string }

// crowded blocks until a log shows a waiting cell.
func (w workbench) crowded(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		found, err := filepath.Glob(filepath.Join(w.out, "*", "logs", "wait.log"))
		if err != nil || len(found) > 0 || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		time.Sleep(time.Millisecond)
	}
}

func (workbench) Fetch(_ context.Context, _ lock.Entry, progress io.Writer) error {
	_, err := fmt.Fprintln(progress, "2 of 2 MB, 1 of 1 files")
	return err
}

func (w workbench) Build(ctx context.Context, job run.Job, events run.Events, look run.Look) error {
	e := job.Entry
	fmt.Fprint(events.StepStarted("image"), "")
	events.StepDone("image", 0, true, nil)
	if err := w.crowded(ctx); err != nil {
		return err
	}
	fmt.Fprint(events.StepStarted("build"), "cc <a.c>\n", "\x1b[31mdone\x1b[0m\n")
	if e.ID == w.fails {
		err := diag.Errorf(diag.Build, "exit 1")
		events.StepDone("build", time.Second, false, err)
		return err
	}
	events.StepDone("build", time.Second, false, nil)
	return look(ctx, run.Built{})
}

func (workbench) Find(context.Context, lock.Entry, string) (run.Result, bool, error) {
	return run.Result{}, false, nil
}
func (workbench) Keep(lock.Entry, run.Result) error { return nil }
func (workbench) Forget(lock.Entry) error           { return nil }
func (workbench) Seal(lock.Entry, run.Result, []verdict.Verdict) ([]artifact.Artifact, error) {
	return nil, nil
}

// ran runs three cells on an engine with two places, and returns the output and the run.
func ran(t *testing.T, o progress.Options) (said string, c *cellRun) {
	t.Helper()
	home := t.TempDir()
	var b bytes.Buffer
	shown := progress.New(&b, o)
	c = &cellRun{RunRequest: RunRequest{Out: filepath.Join(home, "out")}}
	entries := []lock.Entry{{ID: "tool-1", Recipe: "tool"}, {ID: "tool-2", Recipe: "tool"}, {ID: "tool-3", Recipe: "tool"}}
	must.Succeed(t, os.MkdirAll(c.Out, 0o755), c.record(entries))
	shown.Run([]string{"tool-1", "tool-2", "tool-3"})
	bench := workbench{fails: "tool-3", out: c.Out}
	member := queue.Member{Name: "bench", Jobs: 2, Up: func(context.Context) (run.Engine, error) { return bench, nil }}
	var errs []error
	for _, o := range (run.Runner{
		Fetcher: bench, Engine: queue.New(member, shown.Note), Finder: bench, Sealer: bench, Out: c.Out, Jobs: 3,
		Watch: func(e lock.Entry) run.Events { return run.NewWatch(c.Out, e.ID, shown) },
		Done: func(_ int, o run.Outcome) {
			cell := c.cellOf(o)
			err := c.rec.Update(cell)
			check.That(t, err == nil, "%v", err)
			showDone(shown, cell)
		},
	}).Run(t.Context(), entries) {
		errs = append(errs, o.Err)
	}
	_, err := c.rec.Finish(time.Now())
	must.Succeed(t, err)
	err = shown.End(errors.Join(errs...))
	check.That(t, diag.CodeOf(err) == diag.Gate, "the error is %v of class %v", err, diag.CodeOf(err))
	return b.String(), c
}

// A waiting cell is reported while it waits and in run.json.
func TestWaitingIsRecorded(t *testing.T) {
	stderr, w := ran(t, progress.Options{Format: progress.Plain})
	check.That(t, strings.Contains(stderr, " wait waiting\n") && strings.Contains(stderr, " wait done "), "stderr is\n%s", stderr)
	r, err := report.Read(filepath.Join(w.Out, "run.json"))
	must.Succeed(t, err)
	waited := 0
	for _, c := range r.Cells {
		for _, s := range c.Steps {
			check.That(t, s.Waiting == (s.Name == "wait"), "%s: step %s waits: %v", c.ID, s.Name, s.Waiting)
			if s.Waiting {
				waited++
			}
		}
	}
	check.That(t, waited == 1, "%d cells waited, want 1", waited)
}
