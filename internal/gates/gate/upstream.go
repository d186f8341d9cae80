package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var upstreamTests = Gate{
	Name:   "upstream-tests",
	Asks:   "upstream's own tests of the patched code pass on every rank, and known failures still fail",
	Remedy: "the artifact fails upstream's tests: correct it with a patch, or name the case in the recipe's expect.tests with reason and link; if a known failure passes, remove it there",
	Wants:  func(e recipe.Expect) bool { return e.Tests.QuickSeconds() > 0 },
	Needs:  Tests,
	check: func(ctx context.Context, s Subject) verdict.Verdict {
		return checkUpstream(ctx, upstreamRun{gate: "upstream-tests", boxed: s.in(s.Tests), on: recipe.OnCPU}, s.Keep)
	},
}

var upstreamTestsFull = Gate{
	Name:   "upstream-tests-full",
	Asks:   "all of upstream's own tests named by the recipe pass on every rank, and known failures still fail",
	Remedy: upstreamTests.Remedy,
	Wants:  func(e recipe.Expect) bool { return len(e.Tests.Files) > 0 },
	Needs:  Long,
	check: func(ctx context.Context, s Subject) verdict.Verdict {
		return checkUpstream(ctx, upstreamRun{gate: "upstream-tests-full", boxed: s.in(s.Tests), full: true, on: recipe.OnCPU}, s.Keep)
	},
}

// UpstreamOnGPUs is the name of the gate that reads [Subject.TestsTree].
const UpstreamOnGPUs = "gpu-upstream-tests"

var gpuUpstreamTests = Gate{
	Name:      UpstreamOnGPUs,
	Asks:      "all of upstream's own tests named by the recipe pass on ranks with a GPU each, and known failures still fail",
	Remedy:    upstreamTests.Remedy,
	Wants:     func(e recipe.Expect) bool { return len(e.Tests.Files) > 0 && wantsFramework(e) },
	Needs:     GPUs,
	Framework: true,
	check: func(ctx context.Context, s Subject) verdict.Verdict {
		if v, lacks := lacksFramework(s.Device, s.Framework, max(1, s.Expect.Tests.Ranks)); lacks {
			return v
		}
		if s.TestsTree == "" {
			return verdict.Unmeasured("no tree of upstream's tests is named").
				Because("name a clone of upstream's repository: --set source.NAME=DIR, where NAME is that of entry.json's tests")
		}
		env := map[string]string{}
		maps.Copy(env, s.Device.Env)
		env[TestsVariable] = s.TestsTree
		return checkUpstream(ctx, upstreamRun{gate: UpstreamOnGPUs, boxed: s.in(s.Framework), full: true, on: recipe.OnGPUs, env: env}, s.Keep)
	},
}

// TestsVariable is the variable with the path of upstream's tests.
const TestsVariable = "BUILDER_TESTS"

// An upstreamRun says where and how much of upstream's tests a gate runs.
type upstreamRun struct {
	gate string
	boxed
	full bool              // all files instead of their quick parts
	on   string            // the kind of ranks, as in [recipe.Known.On]
	env  map[string]string // for the ranks, besides that of the box
}

// checkUpstream runs all files, also after a failure. A failure takes precedence over
// not measured, and not measured over a pass. It stores all results with the cell.
func checkUpstream(ctx context.Context, how upstreamRun, keep func(name string, data []byte) error) verdict.Verdict {
	if how.box == nil {
		return verdict.Unmeasured("no container with upstream's tests")
	}
	var problems, blind, seen []string
	var results []fileResult
	for _, f := range how.promised.Tests.Files {
		if !how.full && f.Quick == nil {
			continue
		}
		if f.On != "" && f.On != how.on {
			seen = append(seen, label(f)+" asked on "+f.On+" alone")
			continue
		}
		result := how.runFile(ctx, f)
		results = append(results, result)
		if result.Unmeasured != "" {
			blind = append(blind, label(f)+": "+result.Unmeasured)
			continue
		}
		faults, known := result.judge(f, how)
		for _, fault := range faults {
			problems = append(problems, label(f)+": "+fault)
		}
		seen = append(seen, label(f)+" "+result.summary(known))
	}
	if len(results) == 0 {
		blind = append(blind, "the recipe names no file for ranks on "+how.on)
	}
	if err := keepResults(keep, how.gate, results); err != nil {
		blind = append(blind, err.Error())
	}
	v := verdict.Weigh(problems, blind, seen)
	if len(problems)+len(blind) > 0 {
		v.Evidence = strings.Join(append([]string{v.Evidence}, seen...), "; ")
	}
	return v
}

// caseStatus is the result of a test case.
type caseStatus string

const (
	casePassed  caseStatus = "passed"
	caseFailed  caseStatus = "failed" // including errors before or after the test
	caseSkipped caseStatus = "skipped"
)

// A testCase is one case of a file. Message is the reason for a failure or a skip.
type testCase struct {
	Class   string     `json:"class,omitempty"`
	Name    string     `json:"name"`
	Status  caseStatus `json:"status"`
	Seconds float64    `json:"seconds,omitempty"`
	Message string     `json:"message,omitempty"`
}

// maxMessage bounds the message of a case, in bytes.
const maxMessage = 2_000

// A fileResult holds the results of one file. Unmeasured is the reason if they do not
// count.
type fileResult struct {
	File       string       `json:"file"`
	Select     string       `json:"select,omitempty"`
	Seconds    float64      `json:"seconds"`
	Unmeasured string       `json:"unmeasured,omitempty"`
	Ranks      [][]testCase `json:"ranks"`
	Log        string       `json:"log,omitempty"` // the end of the log, if a case failed or nothing was measured
}

// label names an entry of the recipe for users.
func label(f recipe.TestFile) string {
	name := path.Base(f.File)
	if f.Select != "" {
		name += " -k " + strconv.Quote(f.Select)
	}
	if f.Controller != "" {
		name += " with " + f.Controller
	}
	return name
}

// limit returns the time limit of a file from its time in the recipe. It is generous,
// because a host may be slow and busy, but a hang must end.
func limit(seconds int) time.Duration { return time.Duration(6*seconds+300) * time.Second }

// runFile runs one file in its own process, or in one process per rank.
func (how upstreamRun) runFile(ctx context.Context, f recipe.TestFile) fileResult {
	r := fileResult{File: f.File, Select: f.Select, Ranks: [][]testCase{}}
	most := limit(f.Seconds)
	if !how.full {
		r.Select, most = f.Quick.Select, limit(f.Quick.Seconds)
	}
	tests := how.promised.Tests
	controller := ""
	if tests.Launcher != "" {
		controller = cmp.Or(f.Controller, how.promised.Launcher)
	}
	var parts []any
	for range max(1, tests.Ranks) {
		parts = append(parts, map[string]string{"file": f.File, "select": r.Select})
	}
	ctx, cancel := context.WithTimeout(ctx, most+time.Minute)
	defer cancel()
	begun := time.Now()
	end, err := how.start(ctx, nil, how.env, launch{
		gate: "upstream-tests", controller: controller, Parts: parts, Limit: int(most.Seconds()), Program: []string{"upstream.py"},
	})
	r.Seconds = time.Since(begun).Seconds()
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		r.Unmeasured = fmt.Sprintf("it did not end within %s", most)
	case err != nil:
		r.Unmeasured = err.Error()
	default:
		if len(how.promised.Frameworks) == 0 { // a test may need no extension
			end.digests, end.unread = nil, nil
		}
		r.read(end)
	}
	return r
}

// The exit codes of pytest. The results count after 0 (all passed) and 1 (some failed);
// 5 means no test was collected.
const (
	exitPassed, exitFailed = 0, 1
	exitNothing            = 5
)

// A testReport is a line of a rank: a case, or the number of cases and the status of
// pytest at its end.
type testReport struct {
	testCase
	Collected int  `json:"collected"`
	Pytest    *int `json:"pytest"`
}

// missingModule matches the words of Python about a package that a test imports.
var missingModule = regexp.MustCompile(`ModuleNotFoundError: No module named '([\w.]{1,100})'`)

// read parses the reports. They count only if all ranks completed the same cases.
func (r *fileResult) read(end ranksEnd) {
	r.Log = cut(end.Log, 8000)
	faults, err := end.faults()
	if err != nil {
		r.Unmeasured = err.Error()
		return
	}
	for i, rank := range end.Ranks {
		cases, err := casesOf(rank)
		if err != nil {
			r.Unmeasured = strings.Join(append([]string{fmt.Sprintf("rank %d: %v", i, err)}, faults...), "; ")
			if m := missingModule.FindStringSubmatch(end.Log); m != nil {
				r.Unmeasured = fmt.Sprintf("the environment of the tests lacks the Python module %s: name it in requires.tests of the recipe, or give its wheel to gate with --with", m[1])
			}
			return
		}
		r.Ranks = append(r.Ranks, cases)
	}
	switch {
	case len(faults) > 0:
		r.Unmeasured = strings.Join(faults, "; ")
	case !r.alike():
		r.Unmeasured = "the ranks ran different cases"
	case r.count(casePassed)+r.count(caseFailed) == 0:
		r.Unmeasured = fmt.Sprintf("all %d cases were skipped", len(r.Ranks[0]))
	}
}

// casesOf returns the cases of a rank. There are as many as pytest collected.
func casesOf(rank *rankEnd) (cases []testCase, err error) {
	reports, err := reportsOf[testReport](rank)
	if err != nil {
		return nil, err
	}
	var last testReport
	for _, report := range reports {
		if report.Pytest != nil {
			last = report
			continue
		}
		report.Class, report.Name, report.Message = cut(report.Class, 200), cut(report.Name, 200), cut(report.Message, maxMessage)
		cases = append(cases, report.testCase)
	}
	switch {
	case last.Pytest == nil:
		return nil, errors.New("pytest did not come to its end")
	case *last.Pytest == exitNothing || *last.Pytest == exitPassed && len(cases) == 0:
		return nil, errors.New("it collected no test")
	case *last.Pytest != exitPassed && *last.Pytest != exitFailed:
		return nil, fmt.Errorf("pytest ended with exit %d", *last.Pytest)
	case last.Collected != len(cases):
		return nil, fmt.Errorf("%d cases were collected and %d reported", last.Collected, len(cases))
	}
	return cases, nil
}

// alike reports whether all ranks ran the same cases.
func (r *fileResult) alike() bool {
	names := func(cases []testCase) map[string]bool {
		all := map[string]bool{}
		for _, c := range cases {
			all[c.Class+" "+c.Name] = true
		}
		return all
	}
	first := names(r.Ranks[0])
	return !slices.ContainsFunc(r.Ranks, func(cases []testCase) bool { return !maps.Equal(names(cases), first) })
}

// count returns the largest number of cases with that status on one rank.
func (r *fileResult) count(status caseStatus) (most int) {
	for _, cases := range r.Ranks {
		n := 0
		for _, c := range cases {
			if c.Status == status {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// summary describes the results for users, with the number of known failures.
func (r *fileResult) summary(known int) string {
	text := fmt.Sprintf("on %d ranks: %d passed, %d skipped, %d failed", len(r.Ranks), r.count(casePassed), r.count(caseSkipped), r.count(caseFailed))
	if known > 0 {
		text += fmt.Sprintf(", %d of them known", known)
	}
	return text
}

// tally holds the results of the cases of one name on all ranks.
type tally struct {
	failed  []string // ranks
	message string   // of the first failure
	passed  bool     // on some rank
}

// judge returns the problems of a file's results, and the number of known failures. They
// must fail: all of them in a full run, otherwise the selected ones.
func (r *fileResult) judge(f recipe.TestFile, how upstreamRun) (problems []string, known int) {
	tallies := r.tallies()
	issues := map[string]string{} // of known failures, by name
	for _, k := range f.Known {
		for _, name := range k.Cases {
			if k.On == "" || k.On == how.on {
				issues[name] = k.Issue
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tallies)) {
		t := tallies[name]
		if _, expected := issues[name]; expected && len(t.failed) > 0 {
			known++
		} else if len(t.failed) > 0 {
			problems = append(problems, fmt.Sprintf("%s failed on rank %s: %s", name, listed(t.failed, 8), cmp.Or(t.message, "without a message")))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(issues)) {
		t, ran := tallies[name]
		switch {
		case len(t.failed) > 0, !ran && !how.full:
		case !ran:
			problems = append(problems, name+" is named as a known failure, and the file has no such case")
		case t.passed:
			problems = append(problems, fmt.Sprintf("%s passed, and is named as a known failure (%s)", name, issues[name]))
		default:
			problems = append(problems, fmt.Sprintf("%s was skipped, and is named as a known failure (%s)", name, issues[name]))
		}
	}
	return problems, known
}

// tallies groups the cases of all ranks by function name.
func (r *fileResult) tallies() map[string]tally {
	all := map[string]tally{}
	for rank, cases := range r.Ranks {
		for _, c := range cases {
			name, _, _ := strings.Cut(c.Name, "[")
			t := all[name]
			t.passed = t.passed || c.Status == casePassed
			if c.Status == caseFailed {
				t.message = cmp.Or(t.message, cut(strings.TrimSpace(c.Message), 200))
				t.failed = slices.Compact(append(t.failed, strconv.Itoa(rank)))
			}
			all[name] = t
		}
	}
	return all
}

// maxKept bounds the file of all results, in bytes.
const maxKept = 8 << 20

// keepResults stores all results of a gate with the cell.
func keepResults(keep func(name string, data []byte) error, gate string, results []fileResult) error {
	if keep == nil {
		return nil
	}
	data, err := json.MarshalIndent(results, "", " ")
	if err != nil || len(data) > maxKept {
		return fmt.Errorf("the results have %d bytes, above the limit of %d", len(data), maxKept)
	}
	return keep(gate+".json", append(data, '\n'))
}
