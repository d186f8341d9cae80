package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
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

// questions lists the questions about the extension of an artifact, and the ranks of its
// own launcher with a task. All of them load its frameworks first.
func (s Subject) questions(task ring) (all []launch) {
	e, ask := s.Expect, func(gate string, program ...string) { all = append(all, alone(gate, program...)) }
	if wantsPlatform(e) {
		ask("platform", "framework_platform.py", e.Import[0])
	}
	for _, module := range importsOf(e) {
		ask("import", "imports.py", module, strconv.Itoa(exitOfImport))
		all[len(all)-1].clean = true
	}
	if wantsCheckBuild(e) {
		ask("check-build", append([]string{"checkbuild.py"}, frameworks(e)...)...)
	}
	if wantsBuiltFlags(e) {
		ask("built-flags", "flags.py", "module", e.Import[0])
		if extension := s.extensionName(); extension != "" {
			ask("built-flags", "flags.py", "library", extension)
		}
	}
	if wantsRendezvous(e) {
		ask("rendezvous", append([]string{"rendezvous.py"}, e.Import...)...)
	}
	if wantsCollectivesOfRanks(e) {
		l := task.launch(e)
		l.gate, l.horovodrun = "launcher", true
		all = append(all, l)
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

// ends returns the ends of the questions of one gate. In a shared box one process loads
// the frameworks for the questions of all gates.
func (s Subject) ends(ctx context.Context, gate string, task ring) (ends []ranksEnd, err error) {
	all := s.questions(task)
	others := func(l launch) bool { return l.gate != gate }
	run := watchedRun{name: "framework", load: frameworks(s.Expect), launches: all}
	if _, shared := s.Box.(*Shared); !shared || len(s.Expect.Frameworks) == 0 {
		run = watchedRun{name: gate, launches: slices.DeleteFunc(all, others)}
	}
	said, err := s.watch(ctx, run)
	if err != nil {
		return nil, err
	}
	for i, l := range run.launches {
		if l.gate == gate {
			s.logEnd(l, said[i])
			ends = append(ends, said[i])
		}
	}
	return ends, nil
}

// answers returns the answers to the questions of one gate.
func (s Subject) answers(ctx context.Context, gate string) (all []answer, err error) {
	ends, err := s.ends(ctx, gate, s.ring(ranksOfLauncher))
	for _, end := range ends {
		one, failed := end.answer()
		all, err = append(all, one), cmp.Or(err, failed)
	}
	return all, err
}

// extensionName returns the path in the wheel of the extension with the flags, or "".
func (s Subject) extensionName() string {
	digests, _ := s.digests(s.Expect.Extensions...) // the gate extension-present reports the error
	if len(s.Expect.Frameworks) == 0 || len(digests) != 1 {
		return ""
	}
	return slices.Collect(maps.Keys(digests))[0]
}
