package gate

import (
	"context"
	"errors"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
)

// listing is the output of horovodrun --check-build (Horovod 0.28.1), including leading
// and trailing white space.
const listing = `Horovod v0.28.1:

Available Frameworks:
    [X] TensorFlow
    [X] PyTorch
    [ ] MXNet

Available Controllers:
    [X] MPI
    [ ] Gloo

Available Tensor Operations:
    [X] NCCL
    [ ] DDL
    [ ] CCL
    [X] MPI
    [ ] Gloo    
`

// answers is a box with the same answer to every command.
type answers struct {
	result Result
	err    error
	asked  []Command
}

func (a *answers) Run(_ context.Context, c Command) (Result, error) {
	a.asked = append(a.asked, c)
	return a.result, a.err
}

func expect() recipe.Expect {
	return recipe.Expect{
		Import:     []string{"horovod.tensorflow"},
		Frameworks: []string{"TensorFlow"},
		Launcher:   "mpi",
		Gates: recipe.GateSettings{
			"check-build": buildSettings{Controllers: []string{"MPI"}, Operations: []string{"NCCL"}},
			"built-flags": map[string]string{"nccl": "2.13.4", "rocm": "true", "cuda": "false", "mpi": "true", "gloo": "false"},
			"rendezvous":  "sealed",
		},
	}
}

// checked runs a gate on the good wheel for ROCm after a change.
func checked(t *testing.T, g Gate, change func(*specimen)) verdict.Verdict {
	t.Helper()
	s := horovodROCm()
	change(s)
	return g.Check(t.Context(), s.subject(t))
}

// printing lets the question of a gate end so.
func printing(gate, output string, exit int) func(*specimen) {
	return func(s *specimen) { s.box.answers[gate] = Result{Exit: exit, Output: output} }
}

// A process that ends well without its report has not answered.
func TestBuiltFlagsOfASilentProcess(t *testing.T) {
	judged(t, checked(t, builtFlags, printing("built-flags", "", 0)), verdict.NotMeasured, "0 reports")
}

// Every module is imported, also after a failed import.
func TestImport(t *testing.T) {
	v := checked(t, importModule, func(s *specimen) {
		printing("import", "", 1)(s)
		s.expect.Import = []string{"horovod.torch", "horovod.tensorflow"}
	})
	check.That(t, v.Status == verdict.Fail && strings.Contains(v.Evidence, "horovod.torch") &&
		strings.Contains(v.Evidence, "horovod.tensorflow"), "got %+v", v)
}

// A gate that could not run never passes.
func TestNoGatePassesWithoutLooking(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	broken := &answers{err: errors.New("engine is gone")}
	for _, g := range All() {
		for name, v := range map[string]verdict.Verdict{
			"no file, no box": g.Check(context.Background(), Subject{Artifact: "/does/not/exist.whl", Expect: expect()}),
			"broken box":      g.Check(context.Background(), Subject{Artifact: "/does/not/exist.whl", Expect: expect(), Box: broken}),
			"cancelled":       g.Check(cancelled, Subject{Artifact: "/does/not/exist.whl", Expect: expect(), Box: &answers{}}),
		} {
			check.That(t, v.Status != verdict.Pass && v.Remedy != "" && v.Gate == g.Name, "%s, %s: %+v", g.Name, name, v)
		}
	}
}

func TestAPanicIsNotMeasured(t *testing.T) {
	g := Gate{Name: "boom", check: func(context.Context, Subject) verdict.Verdict { panic("x") }}
	judged(t, g.Check(context.Background(), Subject{}), verdict.NotMeasured, "the gate crashed: x")
}

func TestBuiltFault(t *testing.T) {
	for _, c := range []struct{ have, promise, says string }{
		{"true", "true", ""},
		{"", "true", "missing, expected true"},
		{"false", "true", "false, expected true"},
		{"22703", ">=2.22", ""},
		{"22105", ">=2.22", "22105, which is version 2.21.5; expected >=2.22"},
		{"22203", "2.22.3", ""},
		{"0", ">=2.22", "0, expected version >=2.22"},
		{"false", "2.13.4", "false, expected version 2.13.4"},
	} {
		got, err := builtFault(c.have, c.promise)
		check.That(t, err == nil && got == c.says, "%+v: got %q, %v", c, got, err)
	}
	_, err := builtFault("1", "x y")
	check.That(t, err != nil, "a promise that is none was judged")
}
