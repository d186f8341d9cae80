package gate

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"builder/internal/plan/recipe"
)

// A Shared box runs a command once for all gates that ask it, and at most some commands
// at a time. Gates on the same framework then share its import, which takes most of
// their time: two seconds of a processor for TensorFlow.
type Shared struct {
	box   Box
	limit chan struct{}
	seed  [32]byte // of the random tasks of all gates
	mu    sync.Mutex
	runs  map[string]func(context.Context) (Result, error) // by the command as JSON
}

var _ Box = (*Shared)(nil)

// Share returns a shared box around box that runs at most atOnce commands at a time.
func Share(box Box, atOnce int) *Shared {
	return &Shared{box: box, limit: make(chan struct{}, max(1, atOnce)), seed: newSeed(), runs: map[string]func(context.Context) (Result, error){}}
}

// Beside returns a shared box around another box. Both together obey the limit of b.
func (b *Shared) Beside(box Box) *Shared {
	return &Shared{box: box, limit: b.limit, seed: b.seed, runs: map[string]func(context.Context) (Result, error){}}
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
		var once sync.Once
		var result Result
		var failed error
		run = func(ctx context.Context) (Result, error) {
			once.Do(func() { result, failed = b.limited(ctx, c) })
			return result, failed
		}
		b.runs[string(key)] = run
	}
	b.mu.Unlock()
	return run(ctx)
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

// An extensionQuestion is one about the extension of an artifact, and its arguments of Python.
type extensionQuestion struct {
	gate string
	args []string
}

// questionsOf lists the questions about the extension of an artifact. All of them load
// its frameworks first.
func questionsOf(e recipe.Expect, extension string) (all []extensionQuestion) {
	if wantsPlatform(e) {
		all = append(all, extensionQuestion{"platform", []string{"framework_platform.py", e.Import[0]}})
	}
	for _, module := range importsOf(e) {
		all = append(all, extensionQuestion{"import", []string{"imports.py", module}})
	}
	if wantsCheckBuild(e) {
		all = append(all, extensionQuestion{"check-build", append([]string{"checkbuild.py"}, frameworks(e)...)})
	}
	if wantsBuiltFlags(e) {
		all = append(all, extensionQuestion{"built-flags", []string{"flags.py", "module", e.Import[0]}})
		if extension != "" {
			all = append(all, extensionQuestion{"built-flags", []string{"flags.py", "library", extension}})
		}
	}
	return all
}

// frameworks returns the modules of the frameworks: tensorflow for horovod.tensorflow.
func frameworks(e recipe.Expect) (modules []string) {
	for _, module := range e.Import {
		if _, framework, ok := strings.Cut(module, "."); ok {
			modules = append(modules, framework)
		}
	}
	return modules
}

// answers returns the answers to the questions of one gate. In a shared box one process
// loads the frameworks for the questions of all gates. If that process ends early, for
// example because the import of a framework crashes, each question has a process of its
// own.
func (s Subject) answers(ctx context.Context, gate string) ([]answer, error) {
	all := questionsOf(s.Expect, s.extensionName())
	mine := slices.DeleteFunc(slices.Clone(all), func(q extensionQuestion) bool { return q.gate != gate })
	if _, shared := s.Box.(*Shared); shared && len(s.Expect.Frameworks) > 0 {
		said, err := s.asks(ctx, "framework", frameworks(s.Expect), argsOf(all))
		if err == nil {
			var mine []answer
			for i, q := range all {
				if q.gate == gate {
					mine = append(mine, said[i])
					s.log(Command{Args: q.args}, Result{Exit: status(said[i].Exit), Output: said[i].Output})
				}
			}
			return mine, nil
		}
		if !errors.Is(err, errEarly) {
			return nil, err
		}
	}
	var said []answer
	for _, q := range mine {
		one, err := s.asks(ctx, gate, nil, [][]string{q.args})
		if err != nil {
			return nil, err
		}
		s.log(Command{Args: q.args}, Result{Exit: status(one[0].Exit), Output: one[0].Output})
		said = append(said, one...)
	}
	return said, nil
}

func argsOf(all []extensionQuestion) (args [][]string) {
	for _, q := range all {
		args = append(args, q.args)
	}
	return args
}

// extensionName returns the path in the wheel of the extension with the flags, or "".
func (s Subject) extensionName() string {
	if len(s.Expect.Frameworks) == 0 || len(s.Expect.Extensions) != 1 {
		return ""
	}
	digests, err := s.digests(s.Expect.Extensions...)
	if err != nil || len(digests) != 1 {
		return "" // the gate extension-present says so
	}
	for name := range digests {
		return name
	}
	return ""
}
