package run

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"builder/internal/plan/lock"
)

// Step is one step as it went.
type Step struct {
	Name    string    `json:"name"`
	Started time.Time `json:"started,omitzero"`
	Seconds float64   `json:"seconds"`
	Cached  bool      `json:"cached"`
	Failed  bool      `json:"failed,omitempty"`
}

// Wait is the step of a cell that waits for a place at an engine. A cell that need
// not wait has none.
const Wait = "wait"

// IsWait reports whether a step is that of a cell, or of its second build, that
// waits.
func IsWait(step string) bool { return strings.TrimPrefix(step, Again) == Wait }

// Fetch brings everything that an entry names into the store, as a step of its cell.
func Fetch(ctx context.Context, ev Events, f Fetcher, e lock.Entry) error {
	log, start := ev.StepStarted("fetch"), time.Now()
	err := f.Fetch(ctx, e, log)
	ev.StepDone("fetch", time.Since(start), false, err)
	if err != nil {
		return fmt.Errorf("step fetch: %w", err)
	}
	return nil
}

// recorded passes events on and notes the steps in a result. A step that begins
// again, because the engine was lost, takes the place of what it did before and of
// what came after that.
type recorded struct {
	Events
	result *Result
}

func (r *recorded) StepStarted(step string) io.Writer {
	if i := slices.IndexFunc(r.result.Steps, func(s Step) bool { return s.Name == step }); i >= 0 {
		r.result.Steps = r.result.Steps[:i]
	}
	return r.Events.StepStarted(step)
}

func (r *recorded) StepDone(step string, d time.Duration, cached bool, err error) {
	r.Events.StepDone(step, d, cached, err)
	r.result.Steps = append(r.result.Steps, Step{Name: step, Started: time.Now().Add(-d), Seconds: d.Seconds(), Cached: cached, Failed: err != nil})
}
