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

func TestCheckBuild(t *testing.T) {
	for name, c := range map[string]struct {
		output string
		want   verdict.Status
		says   string
	}{
		"as promised":        {listing, verdict.Pass, "[X] TensorFlow, [X] MPI, [X] NCCL; the bytes of the extension agree on gloo mpi nccl"},
		"CPU build":          {strings.Replace(strings.Replace(listing, "[X] TensorFlow", "[ ] TensorFlow", 1), "[X] NCCL", "[ ] NCCL", 1), verdict.Fail, "framework [ ] TensorFlow; tensor operation [ ] NCCL"},
		"no controller":      {strings.Replace(listing, "[X] MPI\n    [ ] Gloo\n\n", "[ ] MPI\n    [ ] Gloo\n\n", 1), verdict.Fail, "controller [ ] MPI"},
		"unasked controller": {strings.Replace(listing, "[ ] Gloo\n\n", "[X] Gloo\n\n", 1), verdict.Fail, "controller [X] Gloo was not requested"},
		"framework missing":  {strings.Replace(listing, "    [X] TensorFlow\n", "", 1), verdict.Fail, "framework TensorFlow is not listed"},
		"nothing":            {"", verdict.NotMeasured, "no items under"},
		"cut off":            {strings.SplitAfter(listing, "Gloo\n")[0], verdict.NotMeasured, "Tensor Operations"},
		"a traceback":        {"Traceback (most recent call last):\n_queue.Empty\n", verdict.NotMeasured, "_queue.Empty"},
		"verbose":            {"\n" + listing, verdict.Pass, "TensorFlow"},
	} {
		v := checked(t, checkBuild, printing("check-build", c.output, 0))
		judged(t, v, c.want, c.says, name)
		check.That(t, (v.Remedy == "") == (v.Status == verdict.Pass),
			"%s: a remedy stands where, and only where, it did not pass: %q", name, v.Remedy)
	}
}

func TestBuiltFlags(t *testing.T) {
	for name, c := range map[string]struct {
		output string
		exit   int
		want   verdict.Status
		says   string
	}{
		"as promised":   {"some warning\n" + builtROCm + "\n", 0, verdict.Pass, "nccl_built()=21304"},
		"other RCCL":    {strings.Replace(builtROCm, "21304", "21806", 1), 0, verdict.Fail, "nccl_built() is 21806, which is version 2.18.6; expected 2.13.4"},
		"CPU build":     {strings.Replace(builtROCm, `"rocm": "true"`, `"rocm": "false"`, 1), 0, verdict.Fail, "rocm_built() is false"},
		"a crash":       {"Segmentation fault\n", 139, verdict.NotMeasured, "exit 139"},
		"lies and dies": {builtROCm, 1, verdict.NotMeasured, "exit 1"},
		"silence":       {"", 0, verdict.NotMeasured, "0 reports"},
		"missing flag":  {`{"nccl": "21304"}`, 0, verdict.Fail, "rocm_built() is missing"},
	} {
		judged(t, checked(t, builtFlags, printing("built-flags", c.output, c.exit)), c.want, c.says, name)
	}
}

func TestImport(t *testing.T) {
	v := checked(t, importModule, printing("import", "Traceback\nundefined symbol: _ZN10tensorflow7functor11DenseUpdate\n", 1))
	check.That(t, v.Status == verdict.Fail && strings.Contains(v.Evidence, "undefined symbol") && v.Remedy != "", "got %+v", v)
	// Every module is imported, also after a failed import.
	v = checked(t, importModule, func(s *specimen) {
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
