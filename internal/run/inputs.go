package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"builder/internal/artifact"
	"builder/internal/diag"
	"builder/internal/lock"
)

// waves orders the indexes of entries so that the inputs of an entry stand in an
// earlier wave than the entry. What takes part in a circle comes last: its
// inputs will not be there, and it will say so.
func waves(entries []lock.Entry) [][]int {
	pending := map[string]bool{}
	var left []int
	for i, e := range entries {
		pending[e.Key()] = true
		left = append(left, i)
	}
	waits := func(i int) bool {
		return slices.ContainsFunc(entries[i].Inputs, func(in lock.Input) bool { return pending[in.Key] })
	}
	var order [][]int
	for len(left) > 0 {
		var wave, rest []int
		for _, i := range left {
			if waits(i) {
				rest = append(rest, i)
			} else {
				wave = append(wave, i)
			}
		}
		if len(wave) == 0 {
			return append(order, rest)
		}
		for _, i := range wave {
			delete(pending, entries[i].Key())
		}
		order, left = append(order, wave), rest
	}
	return order
}

// inputsOf returns the wheels of an entry's inputs among what is done.
func inputsOf(e lock.Entry, done map[string]*Outcome) ([]artifact.Artifact, error) {
	var wheels []artifact.Artifact
	for _, in := range e.Inputs {
		o := done[in.Key]
		switch {
		case o == nil:
			return nil, fmt.Errorf("its input %s is not part of the run", in.ID)
		case o.Err != nil || len(o.Artifacts) == 0:
			return nil, fmt.Errorf("its input %s has no result", in.ID)
		}
		wheels = append(wheels, o.Artifacts[0])
	}
	return wheels, nil
}

// room is the memory that builds share: one that would not fit beside the others
// waits, and one that would not fit at all is never begun, because the system
// would kill its linker in the middle.
type room struct {
	all  int64 // bytes; 0 is without a bound
	free *semaphore.Weighted
}

func newRoom(bytes int64) room { return room{bytes, semaphore.NewWeighted(bytes)} }

// Memory is the step of a cell that waits until the builds beside it leave it room.
// A cell that need not wait has none.
const Memory = "memory"

// enter waits for the memory of a build and returns what gives it back.
func (r room) enter(ctx context.Context, e lock.Entry, ev Events) (leave func(), err error) {
	if r.all == 0 || e.Memory == 0 {
		return func() {}, nil
	}
	if e.Memory > r.all {
		return nil, diag.Errorf(diag.NoEngine, "the build takes %s of memory, there are %s", gigabytes(e.Memory), gigabytes(r.all)).
			WithHint("build on a larger host (--engine), or say how much there is (--memory)")
	}
	leave = func() { r.free.Release(e.Memory) }
	if r.free.TryAcquire(e.Memory) {
		return leave, nil
	}
	log, start := ev.StepStarted(Memory), time.Now()
	fmt.Fprintf(log, "the build takes %s of %s, which the builds beside it have\n", gigabytes(e.Memory), gigabytes(r.all))
	err = r.free.Acquire(ctx, e.Memory)
	ev.StepDone(Memory, time.Since(start), false, err)
	if err != nil {
		return nil, context.Cause(ctx)
	}
	return leave, nil
}

func gigabytes(bytes int64) string { return fmt.Sprintf("%.1f GB", float64(bytes)/1e9) }
