package gate

import (
	"context"
	_ "embed"
	"encoding/json"
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
	mu    sync.Mutex
	runs  map[string]func(context.Context) (Result, error) // by the command as JSON
}

var _ Box = (*Shared)(nil)

// Share returns a shared box around box that runs at most atOnce commands at a time.
func Share(box Box, atOnce int) *Shared {
	return &Shared{box: box, limit: make(chan struct{}, max(1, atOnce)), runs: map[string]func(context.Context) (Result, error){}}
}

// Beside returns a shared box around another box. Both together obey the limit of b.
func (b *Shared) Beside(box Box) *Shared {
	return &Shared{box: box, limit: b.limit, runs: map[string]func(context.Context) (Result, error){}}
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
	return b.box.Run(ctx, c)
}

//go:embed scripts/together.py
var togetherScript string

// probes returns the Python programs about the extension of an artifact that its gates
// run. All of them load its frameworks first.
func probes(e recipe.Expect) (all []Command) {
	all = importCommands(e)
	if wantsPlatform(e) {
		all = append(all, platformCommand(e))
	}
	if wantsCheckBuild(e) {
		all = append(all, checkBuildCommand(e))
	}
	if wantsBuiltFlags(e) {
		all = append(all, builtCommand(e))
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

// probe runs one of the [probes]. In a shared box one process loads the frameworks for
// all of them. If that process ends early, for example because the import of a framework
// crashes, the program runs alone.
func (s Subject) probe(ctx context.Context, c Command) (Result, error) {
	all := probes(s.Expect)
	if _, shared := s.Box.(*Shared); !shared || len(s.Expect.Frameworks) == 0 || len(all) < 2 {
		return s.run(ctx, c)
	}
	out, err := s.Box.Run(ctx, together(frameworks(s.Expect), all))
	if err != nil {
		return out, err
	}
	number := slices.IndexFunc(all, func(other Command) bool { return slices.Equal(other.Args, c.Args) })
	for line := range strings.Lines(out.Output) {
		var is struct {
			Program *int
			Exit    int
			Output  string
		}
		if json.Unmarshal([]byte(line), &is) == nil && is.Program != nil && *is.Program == number {
			result := Result{Exit: is.Exit, Output: is.Output}
			s.log(c, result)
			return result, nil
		}
	}
	return s.run(ctx, c)
}

// together returns the command that runs the programs of several commands.
func together(load []string, all []Command) Command {
	var programs [][]string
	files := map[string]string{"together.py": togetherScript}
	for _, c := range all {
		programs = append(programs, c.Args[1:]) // without PYTHON
		for name, text := range c.Files {
			files[name] = text
		}
	}
	text, err := json.Marshal(map[string]any{"load": load, "programs": programs})
	if err != nil {
		panic("gate: " + err.Error()) // strings only
	}
	files["questions.json"] = string(text)
	return Command{Name: "framework", Args: []string{"PYTHON", "together.py"}, Files: files}
}
