package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/plan/lock"
)

// gates runs every gate that applies, each as a step.
func (r Runner) gates(ctx context.Context, ev Events, e lock.Entry, dir string, built Built) ([]verdict.Verdict, error) {
	if len(built.Artifacts) == 0 {
		return nil, nil
	}
	unpacked := gate.NewUnpacked()
	defer unpacked.Close()
	subject := gate.Subject{Artifact: built.Artifacts[0].Path, Expect: e.Expect, Unpacked: unpacked, Box: built.Box, Stock: built.Stock, Keep: keeper(dir)}
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
	var verdicts []verdict.Verdict
	for _, g := range gate.Wanted(e.Expect, r.most()) {
		log, start := ev.StepStarted("gate "+g.Name), time.Now()
		subject.Log = log
		v := g.Check(ctx, subject).Waive(e.Expect.Waivers, r.Now)
		fmt.Fprintf(log, "%s: %s\n", v.Status, v.Evidence)
		var err error
		if v.Refuses() {
			err = fmt.Errorf("%s: %s", v.Status, v.Evidence)
		}
		ev.StepDone("gate "+g.Name, time.Since(start), false, err)
		verdicts = append(verdicts, v)
		if err := ctx.Err(); err != nil {
			return verdicts, context.Cause(ctx)
		}
	}
	return verdicts, nil
}

// TestsDir holds the complete results of upstream's tests, below the directory of a
// cell.
const TestsDir = "tests"

// keeper returns a function that writes result files below the directory of a cell.
func keeper(dir string) func(name string, data []byte) error {
	return func(name string, data []byte) error {
		at := filepath.Join(dir, TestsDir)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		return atomicfile.Write(filepath.Join(at, name), data)
	}
}

// refusal returns an error for each verdict that refuses the artifact, with its remedy.
// No verdicts at all are an error too.
func refusal(verdicts []verdict.Verdict) error {
	if len(verdicts) == 0 {
		return diag.Errorf(diag.Gate, "no gate checked the artifact").
			WithHint("state in the recipe's expect a promise that a gate can check")
	}
	return verdict.Refusals("", verdicts)
}
