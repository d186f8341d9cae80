package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"builder/internal/base/diag"
	"builder/internal/build/fetch"
	"builder/internal/build/fleet"
	"builder/internal/build/results"
	"builder/internal/build/run"
	"builder/internal/build/runlog"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
	"builder/internal/plan/recipe/recipetest"
	"builder/internal/testutil/golden"
	"builder/internal/view/progress"
	"builder/internal/view/report"
)

const eventSchema = "../../docs/progress.schema.json"

func TestProgressSchema(t *testing.T) {
	golden.CheckFile(t, eventSchema, recipe.Schema(&progress.Event{}))
	page, err := os.ReadFile("../../docs/progress.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range progress.Kinds() {
		if !strings.Contains(string(page), "\n| `"+string(kind)+"` |") {
			t.Errorf("docs/progress.md does not explain the event %s", kind)
		}
		if !strings.Contains(string(recipe.Schema(&progress.Event{})), `"`+string(kind)+`"`) {
			t.Errorf("the schema does not know the event %s", kind)
		}
	}
}

// workbench is the outside of a run, of which one cell fails. A build that takes
// memory goes on until another waits for it.
type workbench struct{ fails, out string }

// crowded waits until the log says that a cell waits.
func (w workbench) crowded(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		found, err := filepath.Glob(filepath.Join(w.out, "*", "logs", "wait.log"))
		if err != nil || len(found) > 0 || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		time.Sleep(time.Millisecond)
	}
}

func (workbench) Fetch(_ context.Context, _ lock.Entry, progress io.Writer) error {
	for done := range int64(3) {
		progress.(fetch.Counter).Bytes(done, 2)
	}
	_, err := fmt.Fprintln(progress, "2 of 2 MB, 1 of 1 files")
	return err
}

func (w workbench) Build(ctx context.Context, e lock.Entry, _ []artifact.Artifact, _ string, events run.Events, look run.Look) error {
	fmt.Fprint(events.StepStarted("image"), "")
	events.StepDone("image", 0, true, nil)
	if err := w.crowded(ctx); e.Memory > 0 && err != nil {
		return err
	}
	fmt.Fprint(events.StepStarted("build"), "cc <a.c>\n", "\x1b[31mdone\x1b[0m\n")
	if e.ID == w.fails {
		err := diag.Errorf(diag.Build, "exit 1")
		events.StepDone("build", time.Second, false, err)
		return err
	}
	events.StepDone("build", time.Second, false, nil)
	return look(ctx, run.Built{})
}

func (w workbench) Rebuild(context.Context, lock.Entry, []artifact.Artifact, string, run.Events) ([]artifact.Artifact, error) {
	return nil, errors.New("nobody asked for it")
}

func (workbench) Find(context.Context, lock.Entry, string) (run.Result, bool, error) {
	return run.Result{}, false, nil
}
func (workbench) Keep(lock.Entry, run.Result) error { return nil }
func (workbench) Forget(lock.Entry) error           { return nil }
func (workbench) Seal(lock.Entry, run.Result, []verdict.Verdict) ([]artifact.Artifact, error) {
	return nil, nil
}

// ran takes three cells through a run and returns what it said and left; two of
// them share the memory of one.
func ran(t *testing.T, o displayOptions) (stderr string, w *workspace) {
	t.Helper()
	home := t.TempDir()
	s, err := store.Open(filepath.Join(home, "store"))
	if err != nil {
		t.Fatal(err)
	}
	w = &workspace{options: options{home: home, out: filepath.Join(home, "out")}, store: s, results: results.New(s)}
	entries := []lock.Entry{{ID: "tool-1", Recipe: "tool", Memory: 8e9}, {ID: "tool-2", Recipe: "tool", Memory: 8e9}, {ID: "tool-3", Recipe: "tool"}}
	var b bytes.Buffer
	shown, err := o.begin(t.Context(), printer{stderr: &b})
	if err != nil {
		t.Fatal(err)
	}
	w.note = shown.Note
	if err := os.MkdirAll(w.out, 0o755); err != nil {
		t.Fatal(err)
	}
	rec, err := w.record(entries)
	if err != nil {
		t.Fatal(err)
	}
	shown.Run(w.planned(w.past(t.Context()), entries), 3)
	bench := workbench{fails: "tool-3", out: w.out}
	member := fleet.Member{Name: "bench", Jobs: 3, Memory: 8e9, Up: func(context.Context) (run.Engine, error) { return bench, nil }}
	var faults []error
	for _, o := range (run.Runner{
		Fetcher: bench, Engine: fleet.New([]fleet.Member{member}, w.note), Finder: bench, Sealer: bench, Out: w.out, Jobs: 3,
		Watch: func(e lock.Entry) run.Events { return newWatch(w.out, e.ID, shown.Display) },
		Done: func(_ int, o run.Outcome) {
			cell := w.cell(o)
			if err := errors.Join(rec.Update(cell), w.remember(t.Context(), o)); err != nil {
				t.Error(err)
			}
			showDone(shown.Display, cell)
		},
	}).Run(t.Context(), entries) {
		faults = append(faults, o.Err)
	}
	if _, err := rec.Finish(time.Now()); err != nil {
		t.Fatal(err)
	}
	err = shown.end(errors.Join(faults...))
	if (untold(err) == nil) != (shown.format == progress.JSON) || diag.CodeOf(err) != diag.Gate {
		t.Errorf("the error is %v of class %v", err, diag.CodeOf(err))
	}
	return b.String(), w
}

// Every event of a run follows the schema, and there is one of each kind.
func TestEventsFollowTheirSchema(t *testing.T) {
	stderr, _ := ran(t, displayOptions{format: "json", verbose: true})
	validate := recipetest.Validator(t, recipe.Schema(&progress.Event{}))
	seen := map[progress.Kind]bool{}
	for line := range strings.Lines(stderr) {
		if err := validate([]byte(line)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		var e progress.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		seen[e.Event] = true
		if e.Event == progress.LogLine && strings.ContainsRune(e.Text, '\x1b') {
			t.Errorf("%q would colour a terminal", e.Text)
		}
	}
	for _, kind := range progress.Kinds() {
		if !seen[kind] && kind != progress.Note {
			t.Errorf("there is no event %s", kind)
		}
	}
	for _, bad := range []string{`{}`, `{"schema":2,"time":"2026-11-22T00:00:00Z","event":"note"}`, `{"schema":1,"time":"2026-11-22T00:00:00Z","event":"frob"}`, `{"schema":1,"time":"2026-11-22T00:00:00Z","event":"note","more":1}`} {
		if validate([]byte(bad)) == nil {
			t.Errorf("the schema allows %s", bad)
		}
	}
}

// The cell that waited says so, in run.json and while it waited.
func TestWaitingIsRecorded(t *testing.T) {
	stderr, w := ran(t, displayOptions{format: "plain"})
	if !strings.Contains(stderr, " wait waiting\n") || !strings.Contains(stderr, " wait done ") {
		t.Errorf("stderr is\n%s", stderr)
	}
	r, err := report.Read(filepath.Join(w.out, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	waited := 0
	for _, c := range r.Cells {
		for _, s := range c.Steps {
			if s.Waiting != (s.Name == "wait") {
				t.Errorf("%s: step %s waits: %v", c.ID, s.Name, s.Waiting)
			}
			if s.Waiting {
				waited++
			}
		}
	}
	if waited != 1 {
		t.Errorf("%d cells waited, want 1", waited)
	}
}

// What was really done is remembered, and the next run says how long it will take.
func TestTheNextRunKnowsHowLong(t *testing.T) {
	_, w := ran(t, displayOptions{format: "plain"})
	cells := w.planned(w.past(t.Context()), []lock.Entry{{ID: "tool-1", Recipe: "tool"}, {ID: "tool-4", Recipe: "tool"}, {ID: "other", Recipe: "other"}})
	for i, want := range []bool{true, true, false} {
		if _, known := cells[i].Steps["build"]; known != want {
			t.Errorf("%s: %v", cells[i].ID, cells[i].Steps)
		}
		for _, step := range []string{"image", "wait"} {
			if _, known := cells[i].Steps[step]; known {
				t.Errorf("%s: a step that took no work is remembered: %v", cells[i].ID, cells[i].Steps)
			}
		}
	}
	w.rebuild = true
	if c := w.planned(w.past(t.Context()), []lock.Entry{{ID: "tool-1", Recipe: "tool"}}); c[0].Steps != nil {
		t.Errorf("of a second build nothing is known: %v", c[0].Steps)
	}
}

func TestTimed(t *testing.T) {
	steps := []run.Step{{Name: "wait", Seconds: 9}, {Name: "fetch", Seconds: 1, Cached: true}, {Name: "build", Seconds: 2}, {Name: "again build", Seconds: 3}, {Name: "gate import", Seconds: 4}, {Name: "gate size", Seconds: 5, Failed: true}}
	want := map[string]float64{"build": 2, "gate import": 4}
	if diff := cmp.Diff(want, timed(run.Outcome{Result: run.Result{Steps: steps}})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// logsOf runs builder logs on the results of a run.
func logsOf(t *testing.T, w *workspace, args ...string) (code diag.Code, stdout, stderr string) {
	t.Helper()
	return builder(append([]string{"logs", "--out", w.out}, args...)...)
}

func TestLogs(t *testing.T) {
	t.Setenv("BUILDER_RECIPES", "")
	_, w := ran(t, displayOptions{format: "plain"})
	code, stdout, stderr := logsOf(t, w)
	for _, want := range []string{"tool-3: error\nstep    verdict  time  log\nfetch   done ", "build   error    1.0s  0.0 kB", "build   done "} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, want %q\n%s%s", code, want, stdout, stderr)
		}
	}
	for _, c := range []struct {
		args   []string
		code   diag.Code
		stdout string
		stderr string
	}{
		{[]string{"tool-3"}, 0, "cc <a.c>\ndone\n", "tool-3/logs/build.log: error"},
		{[]string{"3", "bui", "--tail", "1"}, 0, "done\n", ""},
		{[]string{"tool-3", "-f"}, 0, "cc <a.c>\ndone\n", ""},
		{[]string{"tool-1", "fetch"}, 0, "2 of 2 MB, 1 of 1 files\n", ""},
		{[]string{"tool"}, diag.Usage, "", `"tool" may be 3 of the cells`},
		{[]string{"tol-3"}, diag.Usage, "", `did you mean "tool-3"`},
		{[]string{"tool-3", "biuld"}, diag.Usage, "", `did you mean "build"`},
		{[]string{"tool-3", "--tail", "0"}, diag.Usage, "", "--tail: 0 is not at least 1"},
		{[]string{"tool-3", "build", "--json"}, diag.Usage, "", "it lists logs and prints none"},
		{[]string{"-f"}, diag.Usage, "", "no cell runs in"},
	} {
		code, stdout, stderr := logsOf(t, w, c.args...)
		if code != c.code || stdout != c.stdout || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%v: exit code %d\n%s%s", c.args, code, stdout, stderr)
		}
	}
	code, stdout, _ = logsOf(t, w, "tool-2", "--json")
	var cells []runlog.Cell
	if err := json.Unmarshal([]byte(stdout), &cells); err != nil || code != 0 || len(cells) != 1 {
		t.Fatalf("%v: exit code %d\n%s", err, code, stdout)
	}
	i := slices.IndexFunc(cells[0].Steps, func(l runlog.Log) bool { return l.Step == "build" })
	if l := cells[0].Steps[i]; l.Verdict != "done" || *l.Bytes != 23 || l.Log != "tool-2/logs/build.log" {
		t.Errorf("%+v", l)
	}
}

// A cell that is under way is followed until its step ends.
func TestLogsOfARunningCell(t *testing.T) {
	t.Setenv("BUILDER_RECIPES", "")
	home := t.TempDir()
	w := &workspace{options: options{out: home}}
	if _, err := w.record([]lock.Entry{{ID: "tool-1", Recipe: "tool"}, {ID: "tool-2", Recipe: "tool"}}); err != nil {
		t.Fatal(err)
	}
	progress := progress.New(io.Discard, progress.Options{})
	defer progress.Close()
	events := newWatch(home, "tool-1", progress)
	events.StepStarted("fetch")
	events.StepDone("fetch", time.Second, false, errors.New("nobody answers"))
	log := events.StepStarted("gate import")
	fmt.Fprintln(log, "first")
	if _, stdout, _ := logsOf(t, w); !strings.Contains(stdout, "tool-1: running\n") || !strings.Contains(stdout, "gate-import  running  -") || !strings.Contains(stdout, "tool-2: skipped\n") {
		t.Errorf("the list is\n%s", stdout)
	}
	if _, stdout, _ := logsOf(t, w, "tool-1", "fetch"); stdout != "nobody answers\n" {
		t.Errorf("a step that wrote nothing has its fault for a log: %q", stdout)
	}
	if code, _, stderr := logsOf(t, w, "tool-2"); code != diag.Usage || !strings.Contains(stderr, "it has not begun") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	var stderr bytes.Buffer
	stdout := &seer{text: "first\n", then: func() {
		fmt.Fprintln(log, "last")
		events.StepDone("gate import", time.Second, false, nil)
	}}
	if code := Main([]string{"builder", "logs", "-f", "--out", w.out}, stdout, &stderr); code != 0 || stdout.String() != "first\nlast\n" {
		t.Errorf("exit code %d\n%s%s", code, stdout, &stderr)
	}
}

// seer is a reader of a log who does something when a text is there.
type seer struct {
	bytes.Buffer
	text string
	then func()
}

func (s *seer) Write(p []byte) (int, error) {
	n, err := s.Buffer.Write(p)
	if s.then != nil && strings.Contains(s.String(), s.text) {
		s.then()
		s.then = nil
	}
	return n, err
}

func TestProgressFlag(t *testing.T) {
	t.Setenv("BUILDER_RECIPES", "")
	t.Setenv("BUILDER_HOME", t.TempDir())
	for _, c := range []struct{ format, says string }{
		{"frob", `--progress: "frob" is not known`},
		{"jsn", `did you mean "json"`},
		{"live", "stderr is no terminal that can move its cursor"},
	} {
		code, _, stderr := builder("run", "horovod", "--rocm", "5.7", "--out", t.TempDir(), "--progress", c.format)
		if code != diag.Usage || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit code %d\n%s", c.format, code, stderr)
		}
	}
}
