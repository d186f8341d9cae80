package report_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"builder/internal/base/diag"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/view/report"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// passed returns a cell with one wheel and one passed gate.
func passed(id, sha string) report.Cell {
	return report.Cell{
		ID: id, Key: "key of " + id, From: report.Build,
		Artifacts: []artifact.Artifact{{Name: "a.whl", SHA256: sha, Size: 1}},
		Verdicts:  []verdict.Verdict{{Gate: "import", Status: verdict.Pass}},
	}
}

func failed(id, code string) report.Cell {
	return report.Cell{ID: id, Key: "key of " + id, Error: &report.CellError{Code: code, Message: "it stopped"}}
}

func part(dir string, cells ...report.Cell) report.Part {
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	return report.Part{Dir: dir, Run: report.Run{Builder: "v1", Engine: report.Engine{Kind: "docker"}, Started: day, Finished: day.Add(time.Hour), Cells: cells}}
}

func TestMergeJoins(t *testing.T) {
	east := part("east", passed("b", "1"), report.Cell{ID: "d", Key: "key of d"})
	west := part("west", passed("a", "2"), failed("c", "build"))
	west.Run.Builder, west.Run.Started = "v2", west.Run.Started.Add(-time.Hour)
	got, err := report.Merge([]report.Part{east, west}, []report.Cell{{ID: "a"}, {ID: "e", Recipe: "r"}})
	must.Succeed(t, err)
	var states []string
	for _, c := range got.Cells {
		states = append(states, c.ID+" "+string(c.Status))
	}
	check.Same(t, "values", []string{"a pass", "b pass", "c error", "d skipped", "e skipped"}, states)
	if got.Builder != "v1, v2" || got.Engine.Kind != "docker" || !got.Started.Equal(west.Run.Started) || !got.Finished.Equal(east.Run.Finished) {
		t.Errorf("around the cells: %+v", got)
	}
	west.Run.Finished = time.Time{}
	if got, _ := report.Merge([]report.Part{east, west}, nil); !got.Finished.IsZero() {
		t.Errorf("a run was killed and the whole ended at %v", got.Finished)
	}
}

// The worst result of a cell counts, and a skipped one counts least.
func TestMergeTakesTheWorst(t *testing.T) {
	skipped := report.Cell{ID: "a", Key: "key of a"}
	refused := passed("a", "1")
	refused.Verdicts = append(refused.Verdicts, verdict.Verdict{Gate: "size", Status: verdict.Fail})
	open := passed("a", "1")
	open.Verdicts = nil
	order := []report.Cell{skipped, passed("a", "1"), open, refused, failed("a", "fetch")}
	for i := range order {
		for j := range order {
			got, err := report.Merge([]report.Part{part("x", order[i]), part("y", order[j])}, nil)
			must.Succeed(t, err)
			if want := report.StatusOf(order[max(i, j)]); got.Cells[0].Status != want {
				t.Errorf("%s and %s is %s", report.StatusOf(order[i]), report.StatusOf(order[j]), got.Cells[0].Status)
			}
		}
	}
}

func TestMergeRefusesContradictions(t *testing.T) {
	other := passed("b", "1")
	other.Key = "another"
	more := passed("c", "1")
	more.Artifacts = append(more.Artifacts, artifact.Artifact{Name: "b.whl", SHA256: "2"})
	_, err := report.Merge([]report.Part{
		part("x", report.Cell{ID: "a", Key: "key of a"}, passed("b", "1"), passed("c", "1"), passed("d", "1")),
		part("y", passed("a", "1"), other, more, passed("d", "1")),
		part("z", passed("a", "2"), failed("c", "build")),
	}, nil)
	want := map[string]diag.Code{
		"a has different bytes in y and in z: a.whl sha256:1, and a.whl sha256:2":                diag.Gate,
		"b has the key key of b in x and another in y":                                           diag.Drift,
		"c has different bytes in x and in y: a.whl sha256:1, and a.whl sha256:1 b.whl sha256:2": diag.Gate,
	}
	got := map[string]diag.Code{}
	for _, e := range diag.All(err) {
		got[e.Error()] = e.Code
	}
	check.Same(t, "values", want, got)
}

// The merged run does not depend on the distribution of cells to runs or on the order
// and repetition of runs.
func TestMergeIsOneRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var cells []report.Cell
		for i := range rapid.IntRange(1, 12).Draw(t, "cells") {
			c := passed(fmt.Sprintf("cell-%02d", i), fmt.Sprint(i))
			if rapid.Bool().Draw(t, "fails") {
				c = failed(c.ID, "build")
			}
			cells = append(cells, c)
		}
		whole, err := report.Merge([]report.Part{part("whole", cells...)}, nil)
		must.Succeed(t, err)
		parts := make([]report.Part, rapid.IntRange(1, 5).Draw(t, "parts"))
		for i := range parts {
			parts[i] = part(fmt.Sprint(i))
		}
		for _, c := range cells {
			i := rapid.IntRange(0, len(parts)-1).Draw(t, "part")
			parts[i].Run.Cells = append(parts[i].Run.Cells, c)
		}
		parts = append(parts, parts[rapid.IntRange(0, len(parts)-1).Draw(t, "again")])
		got, err := report.Merge(rapid.Permutation(parts).Draw(t, "order"), nil)
		must.Succeed(t, err)
		if diff := cmp.Diff(whole, got); diff != "" {
			t.Errorf("(-whole +dealt):\n%s", diff)
		}
	})
}

// Every error class survives the way through run.json.
func TestErrHasTheCodeOfARun(t *testing.T) {
	for _, code := range diag.Codes() {
		want := code
		if code == diag.OK {
			want = diag.Unexpected // an error with the code of success
		}
		if got := diag.CodeOf(report.Err(report.Run{Cells: []report.Cell{passed("a", "1"), failed("b", code.String())}})); got != want {
			t.Errorf("%s: exit code %d, want %d", code, got, want)
		}
	}
	refused := passed("a", "1")
	refused.Verdicts[0].Status = verdict.NotMeasured
	unasked := passed("a", "1")
	unasked.Verdicts = nil
	for name, c := range map[string]struct {
		cells []report.Cell
		want  diag.Code
	}{
		"passed":       {[]report.Cell{passed("a", "1")}, diag.OK},
		"none":         {nil, diag.Unexpected},
		"not built":    {[]report.Cell{{ID: "a"}}, diag.Unexpected},
		"not measured": {[]report.Cell{refused}, diag.Gate},
		"not asked":    {[]report.Cell{unasked}, diag.Gate},
		"no such code": {[]report.Cell{failed("a", "code-77")}, diag.Unexpected},
		"the highest":  {[]report.Cell{failed("a", "fetch"), failed("b", "build"), {ID: "c"}}, diag.Fetch},
	} {
		check.Same(t, fmt.Sprintf("%s: exit code", name), c.want, diag.CodeOf(report.Err(report.Run{Cells: c.cells})))
	}
}

func TestOpenPlacesFiles(t *testing.T) {
	dir := t.TempDir()
	cell := passed("tiny-1.0", "1")
	cell.Artifacts[0].Path = "/elsewhere/out/tiny-1.0/rejected/a.whl"
	cell.Steps = []report.Step{{Name: "build", Log: "tiny-1.0/logs/build.log"}, {Name: "gate"}}
	must.Succeed(t, report.Write(filepath.Join(dir, "run.json"), report.Run{Cells: []report.Cell{cell}}))
	p, err := report.Open(dir)
	must.Succeed(t, err)
	got := p.Run.Cells[0]
	check.Same(t, "the wheel is at", filepath.Join(dir, "tiny-1.0/rejected/a.whl"), got.Artifacts[0].Path)
	if want := filepath.Join(dir, "tiny-1.0/logs/build.log"); got.Steps[0].Log != want || got.Steps[1].Log != "" {
		t.Errorf("the logs are at %q and %q, want %s", got.Steps[0].Log, got.Steps[1].Log, want)
	}
}

// A run from another machine names no file outside its directory. All errors are
// reported at once.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		content string
		want    []string
	}{
		"twice":     {`{"schema": 1, "cells": [{"id": "a"}, {"id": "a"}, {"id": "b"}, {"id": "b"}]}`, []string{`"a" appears twice`, `"b" appears twice`}},
		"ids":       {`{"schema": 1, "cells": [{"id": ""}, {"id": ".."}, {"id": "a/b"}, {"id": "/"}]}`, []string{`cell ""`, `cell ".."`, `cell "a/b"`, `cell "/"`}},
		"artifacts": {`{"schema": 1, "cells": [{"id": "a", "artifacts": [{"name": "../x"}, {"name": "y", "path": "out/a/../../y"}, {"name": "z", "path": "out/a/q"}]}]}`, []string{`"../x"`, `"../../y"`, `"q"`}},
		"logs":      {`{"schema": 1, "cells": [{"id": "a", "steps": [{"log": "/etc/passwd"}, {"log": "a/../../b"}]}]}`, []string{`"/etc/passwd"`, `"a/../../b"`}},
	} {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, "run.json"), []byte(c.content), 0o644))
		_, err := report.Open(dir)
		if diag.CodeOf(err) != diag.Usage {
			t.Errorf("%s: %v is of class %v", name, err, diag.CodeOf(err))
			continue
		}
		for _, want := range c.want {
			check.That(t, strings.Contains(err.Error(), want), "%s: %q is not told in:\n%v", name, want, err)
		}
	}
	must.Succeed(t, os.Truncate(filepath.Join(dir, "run.json"), 1<<30)) // a sparse file: no disk space is used
	_, err := report.Open(dir)
	check.Fails(t, err, "larger than", "a file of 1 GB")
	must.Succeed(t, os.Mkdir(filepath.Join(dir, "x"), 0o755), os.Mkdir(filepath.Join(dir, "x", "run.json"), 0o755))
	_, err = report.Open(filepath.Join(dir, "x"))
	check.Fails(t, err, "not a regular file", "a directory")
}

// Text of a run is never read as Markdown or HTML, and the page stays below GitHub's
// limit.
func TestMarkdown(t *testing.T) {
	hostile := failed("a|b", "build")
	hostile.Error.Message = "<img src=x onerror=alert(1)> [x](y) `code` @all | **b**\n# head\x1b[31m \u202e" + strings.Repeat("x", 1000)
	page := report.Markdown(report.Run{Cells: []report.Cell{passed("tiny-1.0", "1"), hostile}})
	if !strings.HasPrefix(page, "### builder: 1 of 2 cells failed: &#60;img src") {
		t.Errorf("the page begins with %q", page[:100])
	}
	want := "| tiny-1.0 | pass | build | a.whl | 1 pass | 0.0s |\n"
	check.That(t, strings.Contains(page, want), "%q is not in\n%s", want, page)
	_, after, _ := strings.Cut(page, "1 pass")
	check.That(t, !strings.ContainsAny(after, "<>[]`*@\x1b\u202e\\") && !strings.Contains(after, "\n# "), "markup is left in\n%s", after)
	check.That(t, !strings.Contains(page, strings.Repeat("x", 500)), "a text is not cut:\n%s", page)
	var many []report.Cell
	for i := range 20000 {
		c := failed(fmt.Sprintf("cell-%d", i), "build")
		c.Error.Message = strings.Repeat("<", 400)
		many = append(many, c)
	}
	page = report.Markdown(report.Run{Cells: many})
	if len(page) > 1<<20 || !strings.Contains(page, "more cells are in run.json") || !strings.Contains(page, "more faults are in run.json") {
		t.Errorf("%d bytes end with %q", len(page), page[len(page)-100:])
	}
}

// FuzzOpen reads, merges and prints an arbitrary run.json.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(`{"schema":1,"cells":[{"id":"a","verdicts":[{"gate":"g","status":"fail"}]}]}`))
	f.Add([]byte(`{"schema": 1, "cells": [{"id": "a", "artifacts": [{"name": "..", "path": "/a/"}], "error": {}}]}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, "run.json"), content, 0o600))
		p, err := report.Open(dir)
		if err != nil {
			return
		}
		for _, c := range p.Run.Cells {
			for _, a := range c.Artifacts {
				check.That(t, strings.HasPrefix(a.Path, filepath.Join(dir, c.ID)+string(filepath.Separator)),
					"%q of %q is at %q", a.Name, c.ID, a.Path)
			}
		}
		merged, err := report.Merge([]report.Part{p, p}, nil)
		check.That(t, err == nil, "a run contradicts itself: %v", err)
		page := report.Markdown(merged)
		check.That(t, len(page) <= 1<<20, "%d bytes", len(page))
	})
}
