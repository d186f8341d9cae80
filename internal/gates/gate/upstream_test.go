package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
)

// suite returns cases. "name!" failed and "name?" was skipped.
func suite(names ...string) (cases []testCase) {
	for _, name := range names {
		c := testCase{Class: "test_x.T", Name: strings.TrimRight(name, "!?"), Status: casePassed, Seconds: 0.1}
		switch name[len(name)-1] {
		case '!':
			c.Status, c.Message = caseFailed, "AssertionError: hvd.allreduce produces incorrect results"
		case '?':
			c.Status, c.Message = caseSkipped, "No GPUs available"
		}
		cases = append(cases, c)
	}
	return cases
}

// ran returns a box with upstream's tests whose ranks report these cases.
func ran(cases ...[]testCase) container { return container{played: played{cases: cases}} }

func tested(known ...string) recipe.Expect {
	f := recipe.TestFile{File: "test/test_x.py", Seconds: 100, Quick: &recipe.Quick{Select: "grouped", Seconds: 10}}
	if len(known) > 0 {
		f.Known = []recipe.Known{{Cases: known, Because: "b", Issue: "https://example.org/1"}}
	}
	return recipe.Expect{Launcher: "mpi", Tests: recipe.Tests{Launcher: "horovodrun", Ranks: 2, Files: []recipe.TestFile{f}}}
}

func TestUpstreamTests(t *testing.T) {
	good := suite("test_a", "test_b?")
	both := func(cases []testCase) played { return played{cases: [][]testCase{cases, cases}} }
	ending := func(change func(*ranksEnd)) played {
		p := both(good)
		p.end = func(_ launch, e *ranksEnd) { change(e) }
		return p
	}
	early := func(exit int, log string) played {
		return ending(func(e *ranksEnd) { *e.Ranks[0], e.Log = rankEnd{Exit: at(exit)}, log })
	}
	line := func(text string) played { return ending(func(e *ranksEnd) { e.Ranks[0].Lines = []string{text} }) }
	for name, c := range map[string]struct {
		answer played
		known  []string
		full   bool
		want   verdict.Status
		says   string
	}{
		"all pass":                          {both(good), nil, false, verdict.Pass, "test_x.py on 2 ranks: 1 passed, 1 skipped, 0 failed"},
		"one case fails on one rank":        {played{cases: [][]testCase{suite("test_a", "test_b"), suite("test_a", "test_b!")}}, nil, false, verdict.Fail, "test_x.py: test_b failed on rank 1: AssertionError: hvd.allreduce produces"},
		"one case fails on both ranks":      {both(suite("test_a!", "test_b")), nil, false, verdict.Fail, "test_a failed on rank 0 1"},
		"a known failure":                   {both(suite("test_a!", "test_b")), []string{"test_a"}, false, verdict.Pass, "1 failed, 1 of them known"},
		"a known failure with parameters":   {both(suite("test_a[1-x]!", "test_a[2]")), []string{"test_a"}, false, verdict.Pass, "1 of them known"},
		"a known failure on one rank":       {played{cases: [][]testCase{suite("test_a!"), suite("test_a")}}, []string{"test_a"}, false, verdict.Pass, "1 of them known"},
		"a known failure passes":            {both(good), []string{"test_a"}, false, verdict.Fail, "test_a passed, and is named as a known failure (https://example.org/1)"},
		"a known failure is skipped":        {both(good), []string{"test_b"}, false, verdict.Fail, "test_b was skipped, and is named as a known failure"},
		"a known failure of another part":   {both(good), []string{"test_z"}, false, verdict.Pass, "1 passed"},
		"a known failure without a case":    {both(good), []string{"test_z"}, true, verdict.Fail, "test_z is named as a known failure, and the file has no such case"},
		"no collected tests":                {line(`{"pytest": 5, "collected": 0}`), nil, false, verdict.NotMeasured, "rank 0: it collected no test"},
		"all cases skipped":                 {both(suite("test_b?")), nil, false, verdict.NotMeasured, "all 1 cases were skipped"},
		"the file cannot be imported":       {line(`{"pytest": 2, "collected": 0}`), nil, false, verdict.NotMeasured, "rank 0: pytest ended with exit 2"},
		"a rank crashes":                    {early(139, "signal 11 (Segmentation fault)\n"), nil, false, verdict.NotMeasured, "rank 0: pytest did not come to its end; rank 0 ended before its end: exit 139: signal 11 (Segmentation fault)"},
		"a rank ends as if all was well":    {early(0, ""), nil, false, verdict.NotMeasured, "rank 0 ended before its end: exit 0"},
		"the ranks crash after their tests": {ending(func(e *ranksEnd) { e.Ranks[1].Exit = at(134) }), nil, false, verdict.NotMeasured, "rank 1 came to its end and then ended with exit 134"},
		"the tests hang":                    {ending(func(e *ranksEnd) { *e.Ranks[0] = rankEnd{Why: "it was still running after 360 seconds"} }), nil, false, verdict.NotMeasured, "it was still running after 360 seconds"},
		"a rank does not start":             {ending(func(e *ranksEnd) { e.Ranks[1] = nil }), nil, false, verdict.NotMeasured, "rank 1 did not start: mpirun"},
		"the ranks ran different cases":     {played{cases: [][]testCase{good, suite("test_a")}}, nil, false, verdict.NotMeasured, "the ranks ran different cases"},
		"a report that cannot be read":      {line("{"), nil, false, verdict.NotMeasured, "a report cannot be read: {"},
		"a case that was not reported":      {ending(func(e *ranksEnd) { e.Ranks[1].Lines = e.Ranks[1].Lines[1:] }), nil, false, verdict.NotMeasured, "rank 1: 2 cases were collected and 1 reported"},
	} {
		g := upstreamTests
		if c.full {
			g = upstreamTestsFull
		}
		v := g.Check(context.Background(), Subject{Expect: tested(c.known...), Tests: container{played: c.answer}})
		judged(t, v, c.want, c.says, name)
	}
	dead := container{answers: map[string]Result{"ranks.py of upstream-tests": {Exit: 137, Output: "Killed\n"}}}
	v := upstreamTests.Check(t.Context(), Subject{Expect: tested(), Tests: dead})
	check.That(t, v.Status == verdict.NotMeasured && strings.Contains(v.Evidence, "exit 137 and 0 answers: Killed"), "%+v", v)
}

// A file runs with the launcher of the image and its own limit, and only in part at the
// level quick.
func TestUpstreamCommands(t *testing.T) {
	good := suite("test_a")
	for name, c := range map[string]struct {
		gate   Gate
		change func(*recipe.Expect)
		want   string
	}{
		"quick":              {upstreamTests, func(*recipe.Expect) {}, "360 2 mpirun grouped"},
		"full":               {upstreamTestsFull, func(*recipe.Expect) {}, "900 2 mpirun "},
		"another launcher":   {upstreamTests, func(e *recipe.Expect) { e.Launcher = "gloo" }, "360 2 meet grouped"},
		"a file with gloo":   {upstreamTests, func(e *recipe.Expect) { e.Tests.Files[0].Controller = "gloo" }, "360 2 meet grouped"},
		"without a launcher": {upstreamTests, func(e *recipe.Expect) { e.Tests.Launcher, e.Tests.Ranks = "", 0 }, "360 1  grouped"},
	} {
		e, box := tested(), &recorder{box: ran(good, good)}
		c.change(&e)
		v := c.gate.Check(context.Background(), Subject{Expect: e, Tests: box})
		job := box.launch(t, 0)
		part, _ := job.Parts[0].(map[string]any)
		by := ""
		if len(job.Launcher) > 0 {
			by = job.Launcher[0]
		} else if job.Meet {
			by = "meet"
		}
		got := fmt.Sprintf("%d %d %s %s", job.Limit, len(job.Parts), by, part["select"])
		check.That(t, v.Status == verdict.Pass && len(box.asked) == 1 && got == c.want && part["file"] == "test/test_x.py",
			"%s: %+v, %q, %+v", name, v, got, job)
	}
	e := tested()
	e.Tests.Files[0].Select = "not alone"
	box := &recorder{box: ran(good, good)}
	v := upstreamTestsFull.Check(context.Background(), Subject{Expect: e, Tests: box})
	check.That(t, len(box.asked) == 1 && strings.Contains(box.asked[0].Stdin, `"select":"not alone"`) &&
		strings.Contains(v.Evidence, `test_x.py -k "not alone" on 2 ranks: 1 passed`), "%+v, %+v", v, box.asked)
	e = tested()
	e.Tests.Files = append(e.Tests.Files, recipe.TestFile{File: "test/test_long.py", Seconds: 1})
	box = &recorder{box: ran(good, good)}
	if upstreamTests.Check(context.Background(), Subject{Expect: e, Tests: box}); len(box.asked) != 1 {
		t.Errorf("a file that is not quick was run: %+v", box.asked)
	}
	e.Tests.Files = e.Tests.Files[1:]
	check.That(t, !upstreamTests.Wants(e) && upstreamTestsFull.Wants(e), "a file that is not quick is for the level full alone")
}

// All files run, and all results are stored.
func TestUpstreamResultsAreKept(t *testing.T) {
	e := tested()
	e.Tests.Files = append(e.Tests.Files, recipe.TestFile{File: "test/test_y.py", Seconds: 1})
	var kept string
	keep := func(name string, data []byte) error {
		kept = name + string(data)
		return nil
	}
	bad := suite("test_a!")
	v := upstreamTestsFull.Check(context.Background(), Subject{Expect: e, Tests: ran(bad, bad), Keep: keep})
	check.That(t, v.Status == verdict.Fail && strings.Count(v.Evidence, "test_a failed on rank 0 1") == 2, "%+v", v)
	for _, want := range []string{"upstream-tests-full.json[", `"test/test_x.py"`, `"test/test_y.py"`, `"failed"`} {
		check.That(t, strings.Contains(kept, want), "%q is missing in %s", want, kept)
	}
	keep = func(string, []byte) error { return errors.New("the disk is full") }
	good := suite("test_a")
	v = upstreamTests.Check(context.Background(), Subject{Expect: e, Tests: ran(good, good), Keep: keep})
	judged(t, v, verdict.NotMeasured, "the disk is full")
}

// The gate on GPUs runs all files with the user's tree, in the user's environment, and a
// failure that is known on ranks without GPUs must not be one there.
func TestUpstreamTestsOnGPUs(t *testing.T) {
	onCPU := func(on string) func(*recipe.Expect) {
		return func(e *recipe.Expect) { e.Tests.Files[0].Known[0].On = on }
	}
	passed, failed := suite("test_a", "test_k"), suite("test_a", "test_k!")
	for name, c := range map[string]struct {
		answer []testCase
		change func(*recipe.Expect)
		tree   string
		want   verdict.Status
		says   string
	}{
		"passes":                          {passed, onCPU(recipe.OnCPU), "/trees/1", verdict.Pass, "test_x.py on 2 ranks: 2 passed"},
		"fails there alone":               {failed, onCPU(recipe.OnGPUs), "/trees/1", verdict.Pass, "1 of them known"},
		"fails everywhere":                {failed, onCPU(""), "/trees/1", verdict.Pass, "1 of them known"},
		"known on CPU ranks, fails":       {failed, onCPU(recipe.OnCPU), "/trees/1", verdict.Fail, "test_k failed on rank 0 1"},
		"known on GPUs, passes":           {passed, onCPU(recipe.OnGPUs), "/trees/1", verdict.Fail, "test_k passed, and is named as a known failure"},
		"an entry for CPU ranks alone":    {passed, func(e *recipe.Expect) { e.Tests.Files[0].On = recipe.OnCPU }, "/trees/1", verdict.NotMeasured, "names no file for ranks on gpus"},
		"an entry for GPUs alone":         {passed, func(e *recipe.Expect) { onCPU(recipe.OnCPU)(e); e.Tests.Files[0].On = recipe.OnGPUs }, "/trees/1", verdict.Pass, "2 passed"},
		"no tree":                         {passed, onCPU(recipe.OnCPU), "", verdict.NotMeasured, "no tree of upstream's tests is named"},
		"the recipe has no quick part":    {passed, func(e *recipe.Expect) { onCPU(recipe.OnCPU)(e); e.Tests.Files[0].Quick = nil }, "/trees/1", verdict.Pass, "2 passed"},
		"more ranks than GPUs":            {passed, func(e *recipe.Expect) { e.Tests.Ranks = 3 }, "/trees/1", verdict.NotMeasured, "2 GPU requested, at least 3 needed"},
		"an environment that cannot test": {nil, onCPU(recipe.OnCPU), "/trees/1", verdict.NotMeasured, "it collected no test"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := cudaOnGPUs()
			s.Expect.Tests, s.TestsTree = tested("test_k").Tests, c.tree
			c.change(&s.Expect)
			box := &recorder{box: ran(c.answer, c.answer)}
			s.Framework = box
			v := gpuUpstreamTests.Check(t.Context(), s)
			judged(t, v, c.want, c.says)
			for _, got := range box.asked {
				check.That(t, got.Env["BUILDER_TESTS"] == c.tree && got.Env["NCCL_NVLS_ENABLE"] == "0", "got %v", got.Env)
			}
			check.That(t, len(s.Device.Env) == 1, "the user's environment became %v", s.Device.Env)
		})
	}
}

// A box that never answers does not block the gate forever.
func TestUpstreamTestsEnd(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	v := upstreamTests.Check(ctx, Subject{Expect: tested(), Tests: silent{}})
	judged(t, v, verdict.NotMeasured, "")
	check.That(t, limit(100) == 900*time.Second, "a file of 100 seconds may take %s", limit(100))
}

// A file of an interrupted run counts as unmeasured, not as one over its time limit.
func TestStoppedUpstreamTests(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := upstreamRun{boxed: boxed{box: silent{}, promised: tested()}, full: true}.runFile(ctx, tested().Tests.Files[0])
	check.That(t, r.Unmeasured == context.Canceled.Error(), "%+v", r)
}

// silent is a box with commands that end with their context.
type silent struct{}

func (silent) Run(ctx context.Context, _ Command) (Result, error) {
	<-ctx.Done()
	return Result{}, ctx.Err()
}
