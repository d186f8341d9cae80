package gate

import (
	"context"
	"encoding/json"
	"sync"
)

// A Shared box runs a command once for all gates that ask it, and at most some commands
// at a time. Gates on the same framework then share its import, which takes most of
// their time: two seconds of a processor for TensorFlow.
type Shared struct {
	box   Box
	limit chan struct{}
	seed  [32]byte // of the random tasks of all gates
	mu    sync.Mutex
	runs  map[string]func() (Result, error) // by the command as JSON
}

var _ Box = (*Shared)(nil)

// Share returns a shared box around box that runs at most atOnce commands at a time.
func Share(box Box, atOnce int) *Shared {
	b := &Shared{limit: make(chan struct{}, max(1, atOnce)), seed: newSeed()}
	return b.Beside(box)
}

// Beside returns a shared box around another box. Both together obey the limit of b.
func (b *Shared) Beside(box Box) *Shared {
	return &Shared{box: box, limit: b.limit, seed: b.seed, runs: map[string]func() (Result, error){}}
}

// Run implements [Box].
func (b *Shared) Run(ctx context.Context, c Command) (Result, error) {
	key, err := json.Marshal(c)
	if err != nil {
		return Result{}, err
	}
	b.mu.Lock()
	run, asked := b.runs[string(key)]
	if !asked {
		run = sync.OnceValues(func() (Result, error) { return b.limited(ctx, c) })
		b.runs[string(key)] = run
	}
	b.mu.Unlock()
	return run()
}

// limited runs a command when fewer than the limit run.
func (b *Shared) limited(ctx context.Context, c Command) (Result, error) {
	select {
	case b.limit <- struct{}{}:
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	}
	defer func() { <-b.limit }()
	if ctx.Err() != nil { // an interrupt may free the place and end the wait at once
		return Result{}, context.Cause(ctx)
	}
	return b.box.Run(ctx, c)
}
