package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/view/progress"
	"builder/internal/view/report"
	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/must"
	"builder/test/kit/recipetest"
)

const eventSchema = "../../docs/progress.schema.json"

func TestProgressSchema(t *testing.T) {
	golden.CheckFile(t, eventSchema, recipetest.Schema(&progress.Event{}))
	page, err := os.ReadFile("../../docs/progress.md")
	must.Succeed(t, err)
	for _, kind := range progress.Kinds() {
		check.That(t, strings.Contains(string(page), "\n| `"+string(kind)+"` |"), "docs/progress.md does not explain the event %s", kind)
		check.That(t, strings.Contains(string(recipetest.Schema(&progress.Event{})), `"`+string(kind)+`"`),
			"the schema does not know the event %s", kind)
	}
}

// recorded starts a run.json with cells that have not started.
func recorded(t *testing.T, ids ...string) (out string, rec *report.Recorder) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "out")
	must.Succeed(t, os.Mkdir(out, 0o755))
	var begun report.Run
	for _, id := range ids {
		begun.Cells = append(begun.Cells, report.Cell{ID: id, Recipe: "tool"})
	}
	rec, err := report.NewRecorder(filepath.Join(out, "run.json"), begun)
	must.Succeed(t, err)
	return out, rec
}

// ran writes a run of three cells, one with a failed build.
func ran(t *testing.T) (out string) {
	t.Helper()
	ids := []string{"tool-1", "tool-2", "tool-3"}
	out, rec := recorded(t, ids...)
	shown := progress.New(io.Discard, progress.Options{})
	defer shown.Close()
	for _, id := range ids {
		cell := report.Cell{ID: id, Recipe: "tool", From: report.Build}
		var err error
		if id == "tool-3" {
			err, cell.Error = errors.New("exit 1"), &report.CellError{Code: "build", Message: "exit 1"}
		}
		events := run.NewWatch(out, id, shown)
		for _, step := range []struct {
			name, text string
			err        error
		}{{"fetch", "2 of 2 MB, 1 of 1 files\n", nil}, {"engine", "", nil}, {"build", "cc <a.c>\n\x1b[31mdone\x1b[0m\n", err}} {
			fmt.Fprint(events.StepStarted(step.name), step.text)
			events.StepDone(step.name, time.Second, false, step.err)
			cell.Steps = append(cell.Steps, report.Step{Name: step.name, Seconds: 1, Failed: step.err != nil, Log: id + "/logs/" + step.name + ".log"})
		}
		must.Succeed(t, rec.Update(cell))
	}
	_, err := rec.Finish(time.Now())
	must.Succeed(t, err)
	return out
}

// logsOf runs builder logs on the results of a run.
func logsOf(t *testing.T, out string, args ...string) (code diag.Code, stdout, stderr string) {
	t.Helper()
	return builder(append([]string{"logs", "--out", out}, args...)...)
}

func TestLogs(t *testing.T) {
	t.Setenv("BUILDER_RECIPES", "")
	w := ran(t)
	code, stdout, stderr := logsOf(t, w)
	for _, want := range []string{"tool-3: error\nstep    verdict  time  log\nfetch   done ", "build   error    1.0s  0.0 kB", "build   done "} {
		check.That(t, code == 0 && strings.Contains(stdout, want), "exit code %d, want %q\n%s%s", code, want, stdout, stderr)
	}
	for _, c := range []struct {
		args   []string
		code   diag.Code
		stdout string
		stderr string
	}{
		{[]string{"tool-3"}, 0, "cc <a.c>\ndone\nexit 1\n", "tool-3/logs/build.log: error"},
		{[]string{"3", "bui"}, 0, "cc <a.c>\ndone\nexit 1\n", ""},
		{[]string{"tool-3", "-f"}, 0, "cc <a.c>\ndone\nexit 1\n", ""},
		{[]string{"tool-1", "fetch"}, 0, "2 of 2 MB, 1 of 1 files\n", ""},
		{[]string{"tool"}, diag.Usage, "", `"tool" matches 3 cells`},
		{[]string{"tol-3"}, diag.Usage, "", `did you mean "tool-3"`},
		{[]string{"tool-3", "biuld"}, diag.Usage, "", `did you mean "build"`},
		{[]string{"-f"}, diag.Usage, "", "no cell runs in"},
	} {
		code, stdout, stderr := logsOf(t, w, c.args...)
		check.That(t, code == c.code && stdout == c.stdout && strings.Contains(stderr, c.stderr),
			"%v: exit code %d\n%s%s", c.args, code, stdout, stderr)
	}
}

// A running cell is followed until its step ends.
func TestLogsOfARunningCell(t *testing.T) {
	t.Setenv("BUILDER_RECIPES", "")
	w, _ := recorded(t, "tool-1", "tool-2")
	progress := progress.New(io.Discard, progress.Options{})
	defer progress.Close()
	events := run.NewWatch(w, "tool-1", progress)
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
	if code, _, stderr := logsOf(t, w, "tool-2"); code != diag.Usage || !strings.Contains(stderr, "its build has not begun") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	var stderr bytes.Buffer
	stdout := &seer{text: "first\n", then: func() {
		fmt.Fprintln(log, "last")
		events.StepDone("gate import", time.Second, false, nil)
	}}
	if code := Main([]string{"builder", "logs", "-f", "--out", w}, stdout, &stderr); code != 0 || stdout.said.String() != "first\nlast\n" {
		t.Errorf("exit code %d\n%s%s", code, &stdout.said, &stderr)
	}
}

// seer is a writer. It calls a function when a text appears.
type seer struct {
	said bytes.Buffer
	text string
	then func()
}

func (s *seer) Write(p []byte) (int, error) {
	n, err := s.said.Write(p)
	if s.then != nil && strings.Contains(s.said.String(), s.text) {
		s.then()
		s.then = nil
	}
	return n, err
}

func TestProgressFlag(t *testing.T) {
	t.Setenv("BUILDER_RECIPES", "")
	t.Setenv("BUILDER_HOME", t.TempDir())
	for _, c := range []struct{ format, says string }{
		{"frob", `--progress: unknown format "frob"`},
		{"jsn", `did you mean "json"`},
		{"live", "stderr is not a terminal that can move its cursor"},
	} {
		code, _, stderr := builder("run", "horovod", "--rocm", "5.7", "--out", t.TempDir(), "--progress", c.format)
		check.That(t, code == diag.Usage && strings.Contains(stderr, c.says), "%s: exit code %d\n%s", c.format, code, stderr)
	}
}

// builder runs a command line in this process.
func builder(args ...string) (code diag.Code, stdout, stderr string) {
	var out, errs bytes.Buffer
	n := Main(append([]string{"builder"}, args...), &out, &errs)
	return diag.Code(n), out.String(), errs.String()
}
