package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"builder/internal/base/diag"
	"builder/internal/build/fleet"
	"builder/internal/build/run"
	"builder/internal/plan/lock"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// site is several engines with a record of their builds.
type site struct {
	mu     sync.Mutex
	built  map[string][]string // by engine
	now    map[string]int64    // bytes in use
	most   map[string]int64
	steps  []string
	notes  []string
	fails  map[string]error         // error of a build on the engine
	dead   map[string]bool          // engines that do not start
	takes  map[string]time.Duration // duration of a build on the engine
	renews int
}

func newSite() *site {
	return &site{
		built: map[string][]string{}, now: map[string]int64{}, most: map[string]int64{},
		fails: map[string]error{}, dead: map[string]bool{}, takes: map[string]time.Duration{},
	}
}

// member returns one engine of a site.
func (s *site) member(name string, jobs int, memory int64) fleet.Member {
	up := func(context.Context) (run.Engine, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.dead[name] {
			return nil, fmt.Errorf("%s does not answer", name)
		}
		return engine{s, name}, nil
	}
	return fleet.Member{
		Name: name, Jobs: jobs, Memory: memory, Up: up,
		Renew: func(ctx context.Context) error {
			s.mu.Lock()
			s.renews++
			s.mu.Unlock()
			_, err := up(ctx)
			return err
		},
	}
}

func (s *site) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// StepStarted implements [run.Events].
func (s *site) StepStarted(step string) io.Writer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, step)
	return io.Discard
}

// StepDone implements [run.Events].
func (s *site) StepDone(string, time.Duration, bool, error) {}

func (s *site) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

type engine struct {
	*site
	name string
}

func (e engine) Build(ctx context.Context, job run.Job, _ run.Events, look run.Look) error {
	e.change(func() {
		e.now[e.name] += job.Entry.Memory
		e.most[e.name] = max(e.most[e.name], e.now[e.name])
	})
	defer e.change(func() { e.now[e.name] -= job.Entry.Memory })
	time.Sleep(max(e.takes[e.name], time.Second))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e.mu.Lock()
	err := e.fails[e.name]
	e.mu.Unlock()
	if err != nil {
		return err
	}
	e.change(func() { e.built[e.name] = append(e.built[e.name], job.Entry.ID) })
	return look(ctx, run.Built{Engine: e.name})
}

// cells returns n entries with the same image, each needing memory bytes.
func cells(n int, memory int64) []lock.Entry {
	var all []lock.Entry
	for i := range n {
		all = append(all, lock.Entry{ID: fmt.Sprint("cell-", i), Memory: memory})
	}
	return all
}

// build builds all entries at once, as far as places are free.
func (s *site) build(ctx context.Context, f *fleet.Fleet, entries []lock.Entry) []error {
	errs := make([]error, len(entries))
	var all sync.WaitGroup
	for i, e := range entries {
		all.Go(func() {
			errs[i] = f.Build(ctx, run.Job{Entry: e}, s, func(context.Context, run.Built) error { return nil })
		})
		time.Sleep(time.Millisecond) // keeps the order
	}
	all.Wait()
	return errs
}

func TestASlowEngineGetsFewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		s.takes["slow"] = 5 * time.Second
		f := fleet.New([]fleet.Member{s.member("fast", 1, 0), s.member("slow", 1, 0)}, s.note)
		err := errors.Join(s.build(t.Context(), f, cells(6, 0))...)
		must.Hold(t, err == nil && f.Jobs() == 2, "%v", err)
		if fast, slow := len(s.built["fast"]), len(s.built["slow"]); fast != 5 || slow != 1 {
			t.Errorf("the fast engine built %d, the slow one %d", fast, slow)
		}
		check.That(t, slices.Contains(s.steps, run.Wait), "that cells waited stands nowhere: %q", s.steps)
	})
}

func TestImagesStayTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		f := fleet.New([]fleet.Member{s.member("a", 2, 0), s.member("b", 2, 0)}, s.note)
		var entries []lock.Entry
		for i, python := range []string{"3.10", "3.11", "3.11", "3.10"} {
			entries = append(entries, lock.Entry{ID: fmt.Sprint(python, "-", i), Image: lock.Image{Python: python}})
		}
		must.Succeed(t, errors.Join(s.build(t.Context(), f, entries)...))
		for name, ids := range s.built {
			check.That(t, len(ids) == 2 && ids[0][:4] == ids[1][:4], "engine %s built %q", name, ids)
		}
	})
}

func TestMemoryIsShared(t *testing.T) {
	for memory, most := range map[int64]int64{40e9: 32e9, 16e9: 16e9, 0: 64e9} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite()
			f := fleet.New([]fleet.Member{s.member("here", 4, memory)}, s.note)
			must.Succeed(t, errors.Join(s.build(t.Context(), f, cells(4, 16e9))...))
			check.That(t, len(s.built["here"]) == 4 && s.most["here"] == most,
				"with %d bytes: %d cells took up to %d bytes together, want %d", memory, len(s.built["here"]), s.most["here"], most)
		})
	}
}

func TestALargeBuildGoesWhereItFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		f := fleet.New([]fleet.Member{s.member("small", 4, 8e9), s.member("large", 1, 64e9)}, s.note)
		must.Succeed(t, errors.Join(s.build(t.Context(), f, cells(2, 32e9))...))
		check.That(t, len(s.built["large"]) == 2, "built: %v", s.built)
	})
}

func TestWhatDoesNotFitIsNotBegun(t *testing.T) {
	s := newSite()
	f := fleet.New([]fleet.Member{s.member("a", 1, 16e9), s.member("b", 1, 24e9)}, s.note)
	err := s.build(t.Context(), f, cells(1, 32e9))[0]
	code := diag.CodeOf(err)
	check.That(t, code == diag.NoEngine && len(s.built) == 0, "class %v, built %v", code, s.built)
	check.That(t, strings.Contains(err.Error(), "the build needs 32.0 GB of memory, the largest engine has 24.0 GB"), "it says %q", err)
}

func TestCellsOfALostEngineGoToTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		f := fleet.New([]fleet.Member{s.member("a", 2, 0), s.member("b", 1, 0)}, s.note)
		s.fails["a"] = &run.EngineError{Err: errors.New("connection reset")}
		s.dead["c"] = true
		time.AfterFunc(500*time.Millisecond, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.dead["a"] = true
		})
		must.Succeed(t, errors.Join(s.build(t.Context(), f, cells(5, 0))...))
		check.That(t, len(s.built["b"]) == 5, "built: %v", s.built)
		said := strings.Join(s.notes, "\n")
		check.That(t, strings.Contains(said, "lost engine a, the other engines build its cells"), "it says %q", said)
	})
}

func TestAnEngineThatComesBackGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		f := fleet.New([]fleet.Member{s.member("a", 1, 0)}, s.note)
		s.fails["a"] = &run.EngineError{Err: errors.New("killed")}
		time.AfterFunc(1500*time.Millisecond, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.fails, "a")
		})
		if err := s.build(t.Context(), f, cells(1, 0))[0]; err != nil || len(s.built["a"]) != 1 || s.renews != 1 {
			t.Errorf("%v, built %v, put in order %d times", err, s.built, s.renews)
		}
	})
}

func TestABuildThatKillsItsEngineEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		f := fleet.New([]fleet.Member{s.member("a", 1, 0)}, s.note)
		s.fails["a"] = &run.EngineError{Err: errors.New("killed")}
		err := s.build(t.Context(), f, cells(1, 0))[0]
		check.That(t, diag.CodeOf(err) == diag.NoEngine && strings.Contains(err.Error(), "the engine failed in all 3 attempts: killed"),
			"%v", err)
	})
}

func TestAllEnginesAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		s.dead["a"], s.dead["b"] = true, true
		f := fleet.New([]fleet.Member{s.member("a", 1, 0), s.member("b", 1, 0)}, s.note)
		for _, err := range s.build(t.Context(), f, cells(3, 0)) {
			if diag.CodeOf(err) != diag.NoEngine || !strings.Contains(err.Error(), "a does not answer") || !strings.Contains(err.Error(), "b does not answer") {
				t.Errorf("%v", err)
			}
		}
	})
}

func TestAFaultOfTheBuildStaysOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		s.fails["a"] = diag.Errorf(diag.Build, "exit 1")
		f := fleet.New([]fleet.Member{s.member("a", 1, 0), s.member("b", 1, 0)}, s.note)
		err := s.build(t.Context(), f, cells(1, 0))[0]
		check.That(t, diag.CodeOf(err) == diag.Build && len(s.built) == 0, "%v, built %v", err, s.built)
	})
}

func TestWaitingCanBeInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		s.takes["a"] = time.Hour
		f := fleet.New([]fleet.Member{s.member("a", 1, 0)}, s.note)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		for _, err := range s.build(ctx, f, cells(3, 0)) {
			check.That(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
		}
	})
}

// A panic of one build must not block the place for others.
func TestAPanicGivesThePlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		f := fleet.New([]fleet.Member{s.member("a", 1, 0)}, s.note)
		func() {
			defer func() { recover() }()
			f.Build(t.Context(), run.Job{}, s, func(context.Context, run.Built) error { panic("boom") })
		}()
		must.Succeed(t, errors.Join(s.build(t.Context(), f, cells(1, 0))...))
	})
}
