package gate

import (
	"context"
	"errors"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
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
		Import: []string{"horovod.tensorflow"}, Frameworks: []string{"TensorFlow"},
		Controllers: []string{"MPI"}, Operations: []string{"NCCL"},
		Built:    map[string]string{"nccl": "2.13.4", "rocm": "true", "cuda": "false", "mpi": "true", "gloo": "false"},
		Launcher: "mpi", Rendezvous: "sealed",
	}
}

func check(g Gate, output string, exit int) verdict.Verdict {
	return g.Check(context.Background(), Subject{Expect: expect(), Box: &answers{result: Result{Exit: exit, Output: output}}})
}

func TestCheckBuild(t *testing.T) {
	for name, c := range map[string]struct {
		output string
		want   verdict.Status
		says   string
	}{
		"as promised":        {listing, verdict.Pass, "[X] TensorFlow, [X] MPI, [X] NCCL"},
		"CPU build":          {strings.Replace(strings.Replace(listing, "[X] TensorFlow", "[ ] TensorFlow", 1), "[X] NCCL", "[ ] NCCL", 1), verdict.Fail, "framework [ ] TensorFlow; tensor operation [ ] NCCL"},
		"no controller":      {strings.Replace(listing, "[X] MPI\n    [ ] Gloo\n\n", "[ ] MPI\n    [ ] Gloo\n\n", 1), verdict.Fail, "controller [ ] MPI"},
		"unasked controller": {strings.Replace(listing, "[ ] Gloo\n\n", "[X] Gloo\n\n", 1), verdict.Fail, "controller [X] Gloo was not requested"},
		"framework missing":  {strings.Replace(listing, "    [X] TensorFlow\n", "", 1), verdict.Fail, "framework TensorFlow is not listed"},
		"nothing":            {"", verdict.NotMeasured, "no items under"},
		"cut off":            {strings.SplitAfter(listing, "Gloo\n")[0], verdict.NotMeasured, "Tensor Operations"},
		"a traceback":        {"Traceback (most recent call last):\n_queue.Empty\n", verdict.NotMeasured, "_queue.Empty"},
		"verbose":            {"\n" + listing, verdict.Pass, "TensorFlow"},
	} {
		v := check(checkBuild, c.output, 0)
		if v.Status != c.want || !strings.Contains(v.Evidence, c.says) {
			t.Errorf("%s: got %v: %s", name, v.Status, v.Evidence)
		}
		if (v.Remedy == "") != (v.Status == verdict.Pass) {
			t.Errorf("%s: a remedy stands where, and only where, it did not pass: %q", name, v.Remedy)
		}
	}
}

func TestBuiltFlags(t *testing.T) {
	good := `{"nccl": "21304", "rocm": "true", "cuda": "false", "mpi": "true", "gloo": "false", "ddl": "false", "ccl": "false"}`
	for name, c := range map[string]struct {
		output string
		exit   int
		want   verdict.Status
		says   string
	}{
		"as promised":   {"some warning\n" + good + "\n", 0, verdict.Pass, "nccl_built()=21304"},
		"other RCCL":    {strings.Replace(good, "21304", "21806", 1), 0, verdict.Fail, "nccl_built() is 21806, which is version 2.18.6; expected 2.13.4"},
		"CPU build":     {strings.Replace(good, `"rocm": "true"`, `"rocm": "false"`, 1), 0, verdict.Fail, "rocm_built() is false"},
		"a crash":       {"Segmentation fault\n", 139, verdict.NotMeasured, "exit 139"},
		"lies and dies": {good, 1, verdict.NotMeasured, "exit 1"},
		"silence":       {"", 0, verdict.NotMeasured, "no output"},
		"missing flag":  {`{"nccl": "21304"}`, 0, verdict.Fail, "rocm_built() is missing"},
	} {
		if v := check(builtFlags, c.output, c.exit); v.Status != c.want || !strings.Contains(v.Evidence, c.says) {
			t.Errorf("%s: got %v: %s", name, v.Status, v.Evidence)
		}
	}
}

func TestAllreduce(t *testing.T) {
	rank := func(n string, sum string) string {
		return `[1,` + n + `]<stdout>: {"rank": ` + n + `, "size": 2, "allreduce": ` + sum + `, "allgather": [1.0, 10.0, 2.0, 20.0], "broadcast": [2.0, 20.0]}` + "\n"
	}
	good := "[0]<stderr>: noise\n" + rank("0", "[3.0, 30.0]") + rank("1", "[3.0, 30.0]")
	for name, c := range map[string]struct {
		output string
		exit   int
		want   verdict.Status
		says   string
	}{
		"right":             {good, 0, verdict.Pass, "2 ranks"},
		"tangled":           {tangled(rank("0", "[3.0, 30.0]") + rank("1", "[3.0, 30.0]")), 0, verdict.Pass, "2 ranks"},
		"in pieces":         {inPieces(good), 0, verdict.Pass, "2 ranks"},
		"without a prefix":  {strings.ReplaceAll(strings.ReplaceAll(good, "[1,0]<stdout>: ", ""), "[1,1]<stdout>: ", ""), 0, verdict.Pass, "2 ranks"},
		"input unchanged":   {rank("0", "[1.0, 10.0]") + rank("1", "[2.0, 20.0]"), 0, verdict.Fail, "rank 0: allreduce gave [1 10], expected [3 30]"},
		"one rank silent":   {rank("0", "[3.0, 30.0]"), 0, verdict.NotMeasured, "1 ranks reported"},
		"the same twice":    {rank("0", "[3.0, 30.0]") + rank("0", "[3.0, 30.0]"), 0, verdict.Fail, "not of ranks 0 and 1"},
		"no output":         {"", 0, verdict.NotMeasured, "0 ranks reported"},
		"launcher failed":   {good + "mpirun: lost a process\n", 1, verdict.Fail, "exit 1: mpirun: lost a process"},
		"each its own ring": {strings.ReplaceAll(good, `"size": 2`, `"size": 1`), 0, verdict.Fail, "rank 0 sees 1 ranks"},
	} {
		if v := check(allreduce2, c.output, c.exit); v.Status != c.want || !strings.Contains(v.Evidence, c.says) {
			t.Errorf("%s: got %v: %s", name, v.Status, v.Evidence)
		}
	}
}

// A rank writes a report and the end of its line at once.
func TestRanksDoNotPrint(t *testing.T) {
	for name, script := range map[string]string{"allreduce.py": allreduceScript, "train.py": trainScript, "gpu.py": gpuScript} {
		if strings.Contains(script, " print(") {
			t.Errorf("%s prints: print writes the end of a line on its own", name)
		}
	}
}

// tangled moves the end of each rank's line behind the next line, as mpirun does if the
// rank writes the end on its own (seen with PyTorch and MPI, 2026-11-26).
func tangled(output string) string {
	lines := strings.Split(strings.TrimSuffix(output, "\n"), "\n")
	var all strings.Builder
	for i, line := range lines {
		all.WriteString(line)
		if i%2 == 1 {
			for _, l := range lines[i-1 : i+1] {
				all.WriteString("\n" + rankTag.FindString(l))
			}
			all.WriteString("\n")
		}
	}
	return all.String() + "\n"
}

// inPieces cuts each line in its middle and shuffles the halves of two lines, as mpirun
// does with lines longer than its buffer.
func inPieces(output string) string {
	lines := strings.Split(strings.TrimSuffix(output, "\n"), "\n")
	var heads, tails strings.Builder
	for _, line := range lines {
		tag := rankTag.FindString(line)
		cut := max(len(tag), len(line)/2)
		heads.WriteString(line[:cut])
		tails.WriteString(tag + line[cut:] + "\n")
	}
	return heads.String() + tails.String()
}

func TestImport(t *testing.T) {
	v := check(importModule, "Traceback\nundefined symbol: _ZN10tensorflow7functor11DenseUpdate\n", 1)
	if v.Status != verdict.Fail || !strings.Contains(v.Evidence, "undefined symbol") || v.Remedy == "" {
		t.Errorf("got %+v", v)
	}
	if v := check(importModule, "", 0); v.Status != verdict.Pass {
		t.Errorf("got %+v", v)
	}
	// Every module is imported, also after a failed import.
	e := expect()
	e.Import = []string{"horovod.torch", "horovod.tensorflow"}
	v = importModule.Check(t.Context(), Subject{Expect: e, Box: &answers{result: Result{Exit: 1}}})
	if v.Status != verdict.Fail || !strings.Contains(v.Evidence, "horovod.torch") || !strings.Contains(v.Evidence, "horovod.tensorflow") {
		t.Errorf("got %+v", v)
	}
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
			if v.Status == verdict.Pass || v.Remedy == "" || v.Gate != g.Name {
				t.Errorf("%s, %s: %+v", g.Name, name, v)
			}
		}
	}
}

func TestAPanicIsNotMeasured(t *testing.T) {
	g := Gate{Name: "boom", check: func(context.Context, Subject) verdict.Verdict { panic("x") }}
	if v := g.Check(context.Background(), Subject{}); v.Status != verdict.NotMeasured || !strings.Contains(v.Evidence, "the gate crashed: x") {
		t.Errorf("got %+v", v)
	}
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
		if got, err := builtFault(c.have, c.promise); err != nil || got != c.says {
			t.Errorf("%+v: got %q, %v", c, got, err)
		}
	}
	if _, err := builtFault("1", "x y"); err == nil {
		t.Error("a promise that is none was judged")
	}
}
