package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

// recorded returns the JUnit file of a rank: pytest 7.4.4 on two ranks of Horovod
// 0.28.1 for ROCm 5.7, reduced to a few cases.
func recorded(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/junit/" + name + ".xml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// one returns the script's output for a file with these JUnit files, one per rank.
func one(exit int, junit ...string) Result {
	e := ended{Exit: exit, Seconds: 7, Log: "1 failed\n"}
	for _, text := range junit {
		e.Ranks = append(e.Ranks, rankEnd{Exit: 0, Junit: text})
	}
	return printed(e)
}

func printed(e ended) Result {
	data, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return Result{Output: "noise\n\n" + string(data) + "\n"}
}

// suite returns a JUnit file with these cases. "name!" failed and "name?" was skipped.
func suite(names ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" tests="%d">`, len(names))
	for _, name := range names {
		inner := ""
		switch name[len(name)-1] {
		case '!':
			inner = `<failure message="AssertionError: hvd.allreduce produces incorrect results">trace</failure>`
		case '?':
			inner = `<skipped type="pytest.skip" message="No GPUs available"/>`
		}
		fmt.Fprintf(&b, `<testcase classname="test_x.T" name="%s" time="0.1">%s</testcase>`, strings.TrimRight(name, "!?"), inner)
	}
	return b.String() + "</testsuite></testsuites>"
}

func tested(known ...string) recipe.Expect {
	f := recipe.TestFile{File: "test/test_x.py", Seconds: 100, Quick: &recipe.Quick{Select: "grouped", Seconds: 10}}
	if len(known) > 0 {
		f.Known = []recipe.Known{{Cases: known, Because: "b", Issue: "https://example.org/1"}}
	}
	return recipe.Expect{Launcher: "mpi", Tests: recipe.Tests{Launcher: "horovodrun", Ranks: 2, Files: []recipe.TestFile{f}}}
}

func TestUpstreamTests(t *testing.T) {
	good := suite("test_a", "test_b?")
	for name, c := range map[string]struct {
		answer Result
		known  []string
		full   bool
		want   verdict.Status
		says   string
	}{
		"all pass":                          {one(0, good, good), nil, false, verdict.Pass, "test_x.py on 2 ranks: 1 passed, 1 skipped, 0 failed"},
		"one case fails on one rank":        {one(0, suite("test_a", "test_b"), suite("test_a", "test_b!")), nil, false, verdict.Fail, "test_x.py: test_b failed on rank 1: AssertionError: hvd.allreduce produces"},
		"one case fails on both ranks":      {one(0, suite("test_a!", "test_b"), suite("test_a!", "test_b")), nil, false, verdict.Fail, "test_a failed on rank 0 1"},
		"a known failure":                   {one(0, suite("test_a!", "test_b"), suite("test_a!", "test_b")), []string{"test_a"}, false, verdict.Pass, "1 failed, 1 of them known"},
		"a known failure with parameters":   {one(0, suite("test_a[1-x]!", "test_a[2]"), suite("test_a[1-x]!", "test_a[2]")), []string{"test_a"}, false, verdict.Pass, "1 of them known"},
		"a known failure on one rank":       {one(0, suite("test_a!"), suite("test_a")), []string{"test_a"}, false, verdict.Pass, "1 of them known"},
		"a known failure passes":            {one(0, good, good), []string{"test_a"}, false, verdict.Fail, "test_a passed, and is named as a known failure (https://example.org/1)"},
		"a known failure is skipped":        {one(0, good, good), []string{"test_b"}, false, verdict.Fail, "test_b was skipped, and is named as a known failure"},
		"a known failure of another part":   {one(0, good, good), []string{"test_z"}, false, verdict.Pass, "1 passed"},
		"a known failure without a case":    {one(0, good, good), []string{"test_z"}, true, verdict.Fail, "test_z is named as a known failure, and the file has no such case"},
		"no collected tests":                {printed(ended{Ranks: []rankEnd{{Exit: 5}, {Exit: 5}}}), nil, false, verdict.NotMeasured, "rank 0: it collected no test"},
		"all cases skipped":                 {one(0, suite("test_b?"), suite("test_b?")), nil, false, verdict.NotMeasured, "all 1 cases were skipped"},
		"the file cannot be imported":       {printed(ended{Log: "ModuleNotFoundError: No module named 'mock'\n", Ranks: []rankEnd{{Exit: 2, Junit: good}, {Exit: 2, Junit: good}}}), nil, false, verdict.NotMeasured, "rank 0: pytest ended with exit 2: ModuleNotFoundError: No module named 'mock'"},
		"a rank crashes":                    {printed(ended{Exit: 139, Log: "signal 11 (Segmentation fault)\n", Ranks: []rankEnd{{Exit: -1, Why: "No such file"}, {Junit: good}}}), nil, false, verdict.NotMeasured, "rank 0: pytest ended with exit -1 (No such file): signal 11 (Segmentation fault)"},
		"the ranks crash after their tests": {one(134, good, good), nil, false, verdict.NotMeasured, "the ranks ended with exit 134 after their tests"},
		"the tests hang":                    {printed(ended{Late: true, Log: "test_join\n", Ranks: []rankEnd{{}, {}}}), nil, false, verdict.NotMeasured, "it did not end within 6m0s: test_join"},
		"a rank is missing":                 {one(0, good), nil, false, verdict.NotMeasured, "exit 0 without results"},
		"the ranks ran different cases":     {one(0, good, suite("test_a")), nil, false, verdict.NotMeasured, "the ranks ran different cases"},
		"the script dies":                   {Result{Exit: 137, Output: "Killed\n"}, nil, false, verdict.NotMeasured, "exit 137 without results: Killed"},
		"a truncated JUnit file":            {one(0, good, good[:len(good)-20]), nil, false, verdict.NotMeasured, "rank 1: its JUnit file is unreadable: XML syntax error"},
	} {
		g := upstreamTests
		if c.full {
			g = upstreamTestsFull
		}
		v := g.Check(context.Background(), Subject{Expect: tested(c.known...), Tests: &answers{result: c.answer}})
		if v.Status != c.want || !strings.Contains(v.Evidence, c.says) {
			t.Errorf("%s: got %v: %s", name, v.Status, v.Evidence)
		}
	}
}

// Recorded output of pytest for Horovod without the patch grouped-allreduce, with
// passed and failed cases.
func TestRecordedJUnit(t *testing.T) {
	cases, err := readJUnit(recorded(t, "tensorflow"))
	if err != nil {
		t.Fatal(err)
	}
	count := map[caseStatus]int{}
	for _, c := range cases {
		count[c.Status]++
		if c.Name == "" || c.Class == "" || (c.Message == "") != (c.Status == casePassed) {
			t.Errorf("%+v", c)
		}
	}
	if count[casePassed] == 0 || count[caseFailed] == 0 {
		t.Errorf("%v", count)
	}
}

func TestHostileJUnit(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct{ text, says string }{
		"nothing":                     {"", "holds no suite"},
		"another format":              {`{"tests": 1}`, "holds no suite"},
		"a growing entity":            {`<!DOCTYPE x [<!ENTITY a "aa">]><testsuites><testsuite tests="1"><testcase name="&a;"/></testsuite></testsuites>`, "declares a document type"},
		"an undefined entity":         {`<testsuites><testsuite tests="1"><testcase name="&a;"/></testsuite></testsuites>`, "invalid character entity"},
		"depth":                       {strings.Repeat("<testsuites>", 100), "deeper than 8"},
		"a case in a case":            {`<testsuite tests="1"><testcase name="a"><testcase name="b"/></testcase></testsuite>`, "a case lies in a case"},
		"a failure outside of a case": {`<testsuite tests="1"><failure/></testsuite>`, "failure lies outside a case"},
		"no count":                    {`<testsuite><testcase name="a"/></testsuite>`, "counts"},
		"a count below zero":          {`<testsuite tests="-1"><testcase name="a"/></testsuite>`, "counts"},
		"a count above the limit":     {`<testsuite tests="9999999"><testcase name="a"/></testsuite>`, "counts"},
		"missing cases":               {`<testsuite tests="3"><testcase name="a"/></testsuite>`, "counts 3 cases and holds 1"},
		"too many cases":              {`<testsuite tests="1">` + strings.Repeat(`<testcase name="a"/>`, maxCases+1) + `</testsuite>`, "more than 20000 cases"},
		"a suite without cases":       {`<testsuite tests="0"></testsuite>`, "it collected no test"},
		"another encoding":            {`<?xml version="1.0" encoding="utf-7"?><testsuite tests="1"><testcase name="a"/></testsuite>`, "utf-7"},
	} {
		if _, err := readJUnit(c.text); err == nil || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 400 {
			t.Errorf("%s: %v", name, err)
		}
	}
	cases, err := readJUnit(`<testsuite tests="1"><testcase classname="` + long + `" name="` + long + `"><failure message="` + long + `"/><skipped/></testcase></testsuite>`)
	if err != nil || len(cases) != 1 || cases[0].Status != caseFailed || len(cases[0].Name) > 300 || len(cases[0].Message) > 2100 {
		t.Errorf("%v, %d cases", err, len(cases))
	}
}

// A file runs with its launcher and its own limit, and only in part at the level quick.
func TestUpstreamCommands(t *testing.T) {
	good := suite("test_a")
	for name, c := range map[string]struct {
		gate   Gate
		change func(*recipe.Expect)
		want   string
	}{
		"quick":              {upstreamTests, func(*recipe.Expect) {}, "PYTHON upstream.py file 360 2 horovodrun -np 2 -H localhost:2 --mpi --mpi-args=--oversubscribe PYTHON SELF rank test/test_x.py grouped"},
		"full":               {upstreamTestsFull, func(*recipe.Expect) {}, "PYTHON upstream.py file 900 2 horovodrun -np 2 -H localhost:2 --mpi --mpi-args=--oversubscribe PYTHON SELF rank test/test_x.py "},
		"another launcher":   {upstreamTests, func(e *recipe.Expect) { e.Launcher = "gloo" }, "PYTHON upstream.py file 360 2 horovodrun -np 2 -H localhost:2 --gloo PYTHON SELF rank test/test_x.py grouped"},
		"a file with gloo":   {upstreamTests, func(e *recipe.Expect) { e.Tests.Files[0].Controller = "gloo" }, "PYTHON upstream.py file 360 2 horovodrun -np 2 -H localhost:2 --gloo PYTHON SELF rank test/test_x.py grouped"},
		"without a launcher": {upstreamTests, func(e *recipe.Expect) { e.Tests.Launcher, e.Tests.Ranks = "", 0 }, "PYTHON upstream.py file 360 1 PYTHON SELF rank test/test_x.py grouped"},
	} {
		e, box := tested(), &answers{result: one(0, good, good)}
		c.change(&e)
		if e.Tests.Ranks == 0 {
			box.result = one(0, good)
		}
		v := c.gate.Check(context.Background(), Subject{Expect: e, Tests: box})
		if v.Status != verdict.Pass || len(box.asked) != 1 || strings.Join(box.asked[0].Args, " ") != c.want {
			t.Errorf("%s: %+v, %+v", name, v, box.asked)
		}
	}
	e := tested()
	e.Tests.Files[0].Select = "not alone"
	box := &answers{result: one(0, good, good)}
	v := upstreamTestsFull.Check(context.Background(), Subject{Expect: e, Tests: box})
	if len(box.asked) != 1 || !strings.HasSuffix(strings.Join(box.asked[0].Args, " "), "rank test/test_x.py not alone") || !strings.Contains(v.Evidence, `test_x.py -k "not alone" on 2 ranks: 1 passed`) {
		t.Errorf("%+v, %+v", v, box.asked)
	}
	e = tested()
	e.Tests.Files = append(e.Tests.Files, recipe.TestFile{File: "test/test_long.py", Seconds: 1})
	box = &answers{result: one(0, good, good)}
	if upstreamTests.Check(context.Background(), Subject{Expect: e, Tests: box}); len(box.asked) != 1 {
		t.Errorf("a file that is not quick was run: %+v", box.asked)
	}
	e.Tests.Files = e.Tests.Files[1:]
	if upstreamTests.Wants(e) || !upstreamTestsFull.Wants(e) {
		t.Error("a file that is not quick is for the level full alone")
	}
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
	v := upstreamTestsFull.Check(context.Background(), Subject{Expect: e, Tests: &answers{result: one(0, bad, bad)}, Keep: keep})
	if v.Status != verdict.Fail || strings.Count(v.Evidence, "test_a failed on rank 0 1") != 2 {
		t.Errorf("%+v", v)
	}
	for _, want := range []string{"upstream-tests-full.json[", `"test/test_x.py"`, `"test/test_y.py"`, `"failed"`} {
		if !strings.Contains(kept, want) {
			t.Errorf("%q is missing in %s", want, kept)
		}
	}
	keep = func(string, []byte) error { return errors.New("the disk is full") }
	good := suite("test_a")
	v = upstreamTests.Check(context.Background(), Subject{Expect: e, Tests: &answers{result: one(0, good, good)}, Keep: keep})
	if v.Status != verdict.NotMeasured || !strings.Contains(v.Evidence, "the disk is full") {
		t.Errorf("%+v", v)
	}
}

// The gate on GPUs runs all files with the user's tree, in the user's environment, and a
// failure that is known on ranks without GPUs must not be one there.
func TestUpstreamTestsOnGPUs(t *testing.T) {
	onCPU := func(on string) func(*recipe.Expect) {
		return func(e *recipe.Expect) { e.Tests.Files[0].Known[0].On = on }
	}
	passed, failed := suite("test_a", "test_k"), suite("test_a", "test_k!")
	for name, c := range map[string]struct {
		answer string
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
		"no tree":                         {passed, onCPU(recipe.OnCPU), "", verdict.NotMeasured, "no tree of upstream's tests is named"},
		"the recipe has no quick part":    {passed, func(e *recipe.Expect) { onCPU(recipe.OnCPU)(e); e.Tests.Files[0].Quick = nil }, "/trees/1", verdict.Pass, "2 passed"},
		"more ranks than GPUs":            {passed, func(e *recipe.Expect) { e.Tests.Ranks = 3 }, "/trees/1", verdict.NotMeasured, "with 2 GPU nothing goes from one to another"},
		"an environment that cannot test": {"", onCPU(recipe.OnCPU), "/trees/1", verdict.NotMeasured, "its JUnit file holds no suite"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := cudaOnGPUs()
			s.Expect.Tests, s.TestsTree = tested("test_k").Tests, c.tree
			c.change(&s.Expect)
			box := &asked{result: one(0, c.answer, c.answer)}
			s.Framework = box
			v := gpuUpstreamTests.Check(t.Context(), s)
			if v.Status != c.want || !strings.Contains(v.Evidence, c.says) {
				t.Errorf("%+v", v)
			}
			for _, got := range box.commands {
				if got.Env["BUILDER_TESTS"] != c.tree || got.Env["NCCL_NVLS_ENABLE"] != "0" {
					t.Errorf("got %v", got.Env)
				}
			}
			if len(s.Device.Env) != 1 {
				t.Errorf("the user's environment became %v", s.Device.Env)
			}
		})
	}
}

// asked is a box that records its commands.
type asked struct {
	result   Result
	commands []Command
}

func (a *asked) Run(_ context.Context, c Command) (Result, error) {
	a.commands = append(a.commands, c)
	return a.result, nil
}

// A box that never answers does not block the gate forever.
func TestUpstreamTestsEnd(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	v := upstreamTests.Check(ctx, Subject{Expect: tested(), Tests: silent{}})
	if v.Status != verdict.NotMeasured {
		t.Errorf("%+v", v)
	}
	if limit(100) != 900*time.Second {
		t.Errorf("a file of 100 seconds may take %s", limit(100))
	}
}

// A file of an interrupted run counts as unmeasured, not as one over its time limit.
func TestStoppedUpstreamTests(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := Subject{Expect: tested(), Tests: silent{}}.runFile(ctx, tested().Tests.Files[0], upstreamRun{box: silent{}, full: true})
	if r.Unmeasured != context.Canceled.Error() {
		t.Errorf("%+v", r)
	}
}

// silent is a box with commands that end with their context.
type silent struct{}

func (silent) Run(ctx context.Context, _ Command) (Result, error) {
	<-ctx.Done()
	return Result{}, ctx.Err()
}

func FuzzJUnit(f *testing.F) {
	f.Add(suite("test_a", "test_b!", "test_c?"))
	f.Add(`<testsuite tests="1"><testcase name="a"><error/></testcase></testsuite>`)
	f.Fuzz(func(t *testing.T, text string) {
		cases, err := readJUnit(text)
		if err == nil && len(cases) == 0 {
			t.Error("a file without cases was read")
		}
		failed := slices.ContainsFunc(cases, func(c testCase) bool { return c.Status == caseFailed })
		if failed && !strings.Contains(text, "failure") && !strings.Contains(text, "error") {
			t.Errorf("a case failed: %q", text)
		}
	})
}
