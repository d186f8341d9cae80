package run_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"builder/internal/build/run"
	"builder/internal/files/artifact"
	"builder/internal/gates/gate"
	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
)

// meeting is a box whose commands wait until atOnce of them run.
type meeting struct {
	atOnce  int
	running chan struct{}
	met     chan struct{}
}

func newMeeting(atOnce int) *meeting {
	return &meeting{atOnce, make(chan struct{}, 9), make(chan struct{})}
}

func (m *meeting) Run(ctx context.Context, c gate.Command) (gate.Result, error) {
	m.running <- struct{}{}
	if len(m.running) == m.atOnce {
		close(m.met)
	}
	select {
	case <-m.met:
	case <-ctx.Done():
		return gate.Result{}, ctx.Err()
	}
	return gate.Result{Output: "output of " + c.Name + "\n"}, nil
}

// boxed is an engine whose builds have a box.
type boxed struct {
	*fake
	box gate.Box
}

func (b boxed) Build(ctx context.Context, job run.Job, _ run.Events, look run.Look) error {
	e, dir := job.Entry, job.Dir
	path := filepath.Join(dir, "x-1-py3-none-any.whl")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(path, []byte("no wheel"), 0o644)); err != nil {
		return err
	}
	a, err := artifact.Of(path, e.Key())
	if err != nil {
		return err
	}
	return look(ctx, run.Built{Artifacts: []artifact.Artifact{a}, Box: b.box})
}

// steps records the steps of a cell and their logs, in order.
type steps struct {
	names []string
	logs  map[string]*strings.Builder
	open  bool
}

func (s *steps) StepStarted(name string) io.Writer {
	if s.open {
		s.names = append(s.names, "two steps at once")
	}
	s.open, s.logs[name] = true, &strings.Builder{}
	s.names = append(s.names, name)
	return s.logs[name]
}

func (s *steps) StepDone(string, time.Duration, bool, error) { s.open = false }

// Gates in containers run beside each other. Their steps are reported in order, each
// with its own log.
func TestGatesBesideEachOther(t *testing.T) {
	e := entry("x")
	e.Expect = recipe.Expect{Packages: []string{"x"}, Import: []string{"x"}, Gates: recipe.GateSettings{"built-flags": map[string]string{"nccl": "true"}}}
	f, seen := &fake{}, &steps{logs: map[string]*strings.Builder{}}
	r := runner(f, t.TempDir())
	r.Engine, r.Gates, r.Watch = boxed{f, newMeeting(2)}, 2, func(string) run.Events { return seen }
	outcomes := r.Run(t.Context(), []lock.Entry{e})
	var gates []string
	for _, v := range outcomes[0].Result.Verdicts {
		gates = append(gates, "gate "+v.Gate)
	}
	if i := slices.Index(seen.names, gates[0]); i < 0 || !slices.Equal(seen.names[i:], gates) || !slices.Contains(gates, "gate built-flags") {
		t.Errorf("steps %q of gates %q", seen.names, gates)
	}
	for name, other := range map[string]string{"import": "built-flags", "built-flags": "import"} {
		if log := seen.logs["gate "+name].String(); !strings.Contains(log, "output of "+name+"\n") || strings.Contains(log, "output of "+other) {
			t.Errorf("the log of %s is\n%s", name, log)
		}
	}
}

// An interrupt ends the gates that run and those that wait.
func TestGatesInterrupted(t *testing.T) {
	e := entry("x")
	e.Expect = recipe.Expect{Packages: []string{"x"}, Import: []string{"x"}, Gates: recipe.GateSettings{"built-flags": map[string]string{"nccl": "true"}}}
	box := newMeeting(2) // two never meet
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	f := &fake{}
	r := runner(f, t.TempDir())
	r.Engine, r.Gates = boxed{f, box}, 1
	go func() {
		for len(box.running) == 0 {
			time.Sleep(time.Millisecond)
		}
		stop()
	}()
	if o := r.Run(ctx, []lock.Entry{e})[0]; !errors.Is(o.Err, context.Canceled) || len(f.kept) > 0 || len(box.running) != 1 {
		t.Errorf("%v, kept %q, %d commands", o.Err, f.kept, len(box.running))
	}
}
