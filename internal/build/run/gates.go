package run

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sourcegraph/conc"

	"builder/internal/base/atomicfile"
	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/plan/lock"
)

// gates runs every gate that applies. The time of its step is the time until its verdict
// was there; the verdict has the time of the gate itself.
func (r Runner) gates(ctx context.Context, ev Events, e lock.Entry, dir string, built Built) ([]verdict.Verdict, error) {
	if len(built.Artifacts) == 0 {
		return nil, nil
	}
	unpacked := gate.NewUnpacked()
	defer unpacked.Close()
	keep := func(name string, data []byte) error {
		return atomicfile.Write(filepath.Join(dir, TestsDir, name), data)
	}
	subject := gate.Subject{Artifact: built.Artifacts[0].Path, Expect: e.Expect, Unpacked: unpacked, Keep: keep}
	if built.Box != nil {
		box := gate.Share(built.Box, r.Gates)
		subject.Box = box
		if built.Stock != nil {
			subject.Stock = box.Beside(built.Stock)
		}
	}
	if built.Source != "" {
		subject.Source = &gate.Upstream{Archive: built.Source, Name: e.Source.Filename, Patches: e.Patches, Facts: e.Facts}
	}
	if built.Tests != nil && r.most() >= gate.Tests {
		box, err := built.Tests(ctx)
		if err != nil {
			return nil, err
		}
		subject.Tests = box
	}
	for _, a := range built.Artifacts[1:] {
		subject.Beside = append(subject.Beside, a.Path)
	}
	return AskGates(ctx, ev, gate.Wanted(e.Expect, r.most()), subject, r.Now)
}

// AskGates runs gates on a subject, reports each as a step, and applies the waivers of the
// promise at the time now. Gates in a container begin after the first gates on files,
// which are quick and refuse first.
func AskGates(ctx context.Context, ev Events, gates []gate.Gate, s gate.Subject, now time.Time) ([]verdict.Verdict, error) {
	checks := newChecks(gates, s)
	var beside conc.WaitGroup
	defer beside.Wait()
	begin := sync.OnceFunc(func() {
		beside.Go(func() { checks.inContainer(ctx) })
	})
	var verdicts []verdict.Verdict
	for _, c := range checks {
		log, start := ev.StepStarted("gate "+c.gate.Name), time.Now()
		c.log.show(log)
		if c.gate.Needs == gate.Container {
			begin()
		} else {
			c.run(ctx)
		}
		v := (<-c.verdict).Waive(s.Expect.Waivers, now)
		fmt.Fprintf(log, "%s: %s\n", v.Status, v.Evidence)
		var err error
		if v.Refuses() {
			err = fmt.Errorf("%s: %s", v.Status, v.Evidence)
		}
		ev.StepDone("gate "+c.gate.Name, time.Since(start), false, err)
		verdicts = append(verdicts, v)
		if ctx.Err() != nil {
			return verdicts, context.Cause(ctx)
		}
	}
	return verdicts, nil
}

// A check is one gate on one subject. Gates in a container run beside each other, as far
// as their box runs commands, and their steps are reported one after the other.
type check struct {
	gate    gate.Gate
	subject gate.Subject
	log     *laterLog
	verdict chan verdict.Verdict // holds one
}

type checks []*check

func newChecks(gates []gate.Gate, s gate.Subject) (all checks) {
	for _, g := range gates {
		c := &check{gate: g, subject: s, log: &laterLog{}, verdict: make(chan verdict.Verdict, 1)}
		c.subject.Log = c.log
		all = append(all, c)
	}
	return all
}

func (c *check) run(ctx context.Context) { c.verdict <- c.gate.Check(ctx, c.subject) }

// inContainer runs the gates in a container. The last of them take longest, so they come
// first.
func (all checks) inContainer(ctx context.Context) {
	var workers conc.WaitGroup
	defer workers.Wait()
	for _, c := range slices.Backward(all) {
		if c.gate.Needs == gate.Container {
			workers.Go(func() { c.run(ctx) })
		}
	}
}

// laterLog keeps what is written before its step is shown, and then passes everything
// on.
type laterLog struct {
	mu   sync.Mutex
	kept bytes.Buffer
	to   io.Writer // nil until show
}

// Write implements [io.Writer].
func (l *laterLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to == nil {
		return l.kept.Write(p)
	}
	return l.to.Write(p)
}

func (l *laterLog) show(to io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.kept.WriteTo(to) // the log of a step may be lost, its verdict not
	l.to = to
}

// TestsDir holds the complete results of upstream's tests, below the directory of a
// cell.
const TestsDir = "tests"
