package gate

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	rnd "math/rand/v2"
	"strings"
	"sync"

	"builder/internal/plan/recipe"
)

// A Box is a clean container without a network. It holds the installed artifact and its
// locked run-time dependencies, and nothing of the build.
type Box interface {
	// Run executes a command in the box. A nonzero exit status is a Result, not an
	// error.
	Run(ctx context.Context, c Command) (Result, error)
}

// A Command is an argument vector and files for its working directory. PYTHON in Args
// stands for the interpreter of the box.
type Command struct {
	Name  string
	Args  []string
	Env   map[string]string
	Files map[string]string
	Stdin string
}

// Result is the output of a command, including standard error, and its exit status.
type Result struct {
	Exit   int
	Output string
}

// boxed is the artifact in a box, with what a gate that runs it there compares and writes.
type boxed struct {
	box      Box           // nil if there is none
	artifact string        // path
	promised recipe.Expect // of the artifact
	log      io.Writer     // nil if there is none
}

// in returns the artifact in one of its boxes.
func (s Subject) in(box Box) boxed { return boxed{box, s.Artifact, s.Expect, s.Log} }

// run executes a command in the box, if there is one.
func (b boxed) run(ctx context.Context, c Command) (Result, error) {
	if b.box == nil {
		return Result{}, errNoBox
	}
	result, err := b.box.Run(ctx, c)
	logResult(b.log, c, result)
	return result, err
}

var errNoBox = errors.New("no container to run the artifact in")

// logResult writes a command and its result to the log, if there is one.
func logResult(log io.Writer, c Command, result Result) {
	if log != nil {
		fmt.Fprintf(log, "$ %s\n%s[exit %d]\n", strings.Join(c.Args, " "), result.Output, result.Exit)
	}
}

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

func newSeed() (seed [32]byte) {
	_, _ = rand.Read(seed[:]) // it never returns an error
	return seed
}

// random returns the source of random data of a task. Each task has its own, so that the
// data of one tell nothing about those of another. In a shared box all gates have the same
// seed, so that equal launches are one.
func random(box Box, task string) *rnd.Rand {
	seed := newSeed()
	if shared, ok := box.(*Shared); ok {
		seed = shared.seed
	}
	return rnd.New(rnd.NewChaCha8(sha256.Sum256(append(seed[:], task...))))
}
