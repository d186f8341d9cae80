package run

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"builder/internal/plan/lock"
	"builder/internal/view/report"
)

// Fetch brings every file of an entry into the store, as a step of its cell.
func Fetch(ctx context.Context, ev Events, f Fetcher, e lock.Entry) error {
	log, start := ev.StepStarted("fetch"), time.Now()
	err := f.Fetch(ctx, e, log)
	ev.StepDone("fetch", time.Since(start), false, err)
	if err != nil {
		return fmt.Errorf("step fetch: %w", err)
	}
	return nil
}

// recorded forwards events and records the steps in a result. If a step starts again
// after the loss of an engine, its earlier record and all later records are dropped.
type recorded struct {
	Events
	result *Result
}

func (r *recorded) StepStarted(step string) io.Writer {
	if i := slices.IndexFunc(r.result.Steps, func(s report.Step) bool { return s.Name == step }); i >= 0 {
		r.result.Steps = r.result.Steps[:i]
	}
	return r.Events.StepStarted(step)
}

func (r *recorded) StepDone(step string, d time.Duration, cached bool, err error) {
	r.Events.StepDone(step, d, cached, err)
	r.result.Steps = append(r.result.Steps, report.Step{
		Name: step, Started: time.Now().Add(-d).UTC().Truncate(time.Millisecond), Seconds: report.Seconds(d.Seconds()),
		Cached: cached, Failed: err != nil,
	})
}
