package report_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/internal/view/report"
	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/must"
)

func example() report.Run {
	east := time.FixedZone("east", 2*60*60)
	return report.Run{
		Builder: "v1.2.3",
		Engine:  report.Engine{Kind: "native", Version: "v0.19.10", Address: "unix:///run/engine.sock"},
		Started: time.Date(2026, 3, 1, 9, 31, 52, 123456789, east),
		Cells: []report.Cell{
			{
				ID: "horovod-0.28.1+rocm5.7-cp311", Key: "ab12", Recipe: "horovod", From: report.Build,
				Axes:      map[string]string{"rocm": "5.7", "python": "3.11"},
				Steps:     []report.Step{{Name: "image", Cached: true}, {Name: "build", Seconds: 85.12345, Log: "horovod/build.log"}},
				Artifacts: []artifact.Artifact{{Name: "horovod-0.28.1.whl", Path: "horovod/horovod-0.28.1.whl", SHA256: "cd34", Size: 1234, Key: "ab12"}},
				Verdicts: []verdict.Verdict{
					{Gate: "import", Status: verdict.Pass, Evidence: "imported", Seconds: 1.5},
					{Gate: "check-build", Status: verdict.Fail, Evidence: "NCCL is missing", Remedy: "install rccl-dev", Seconds: 0.25},
				},
			},
			{ID: "horovod-0.28.1+rocm6.1-cp311", Key: "ef56", Recipe: "horovod", Error: &report.CellError{Code: "build", Message: "exit 1", Hint: "look <here>"}},
			{ID: "horovod-0.28.1+rocm6.2-cp311", Key: "7890", Recipe: "horovod"},
		},
	}
}

// What is read from a file is written as the same file.
func TestWriteGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.json")
	run := example()
	for range 2 {
		must.Succeed(t, report.Write(path, run))
		golden.Check(t, "run.json", []byte(contents(t, path)))
		run = must.Get(report.Read(path))(t)
	}
	check.Same(t, "the artifact lost its key", "ab12", run.Cells[0].Artifacts[0].Key)
}

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ content, want string }{
		"newer":    {`{"schema": 2, "cells": []}`, "schema 2, want 1"},
		"none":     {`{"cells": []}`, "schema 0, want 1"},
		"cut off":  {`{"schema": 1, "cells": [{"id": "a"`, "unexpected end"},
		"trailing": {`{"schema": 1, "cells": []} {}`, "after top-level value"},
	} {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.WriteFile(path, []byte(c.content), 0o644))
		_, err := report.Read(path)
		check.Fails(t, err, c.want, name)
	}
	_, err := report.Read(filepath.Join(dir, "missing"))
	check.That(t, errors.Is(err, fs.ErrNotExist), "missing: got %v", err)
}

func TestStatusOf(t *testing.T) {
	wheel := []artifact.Artifact{{Name: "a.whl"}}
	verdicts := func(statuses ...verdict.Status) (all []verdict.Verdict) {
		for _, s := range statuses {
			all = append(all, verdict.Verdict{Status: s})
		}
		return all
	}
	for name, c := range map[string]struct {
		cell report.Cell
		want report.Status
	}{
		"nothing":      {report.Cell{Status: report.Pass}, report.Skipped},
		"no gate":      {report.Cell{Artifacts: wheel}, report.NotMeasured},
		"pass":         {report.Cell{Artifacts: wheel, Verdicts: verdicts(verdict.Pass, verdict.Waived)}, report.Pass},
		"not measured": {report.Cell{Artifacts: wheel, Verdicts: verdicts(verdict.Pass, verdict.NotMeasured)}, report.NotMeasured},
		"zero verdict": {report.Cell{Artifacts: wheel, Verdicts: verdicts(verdict.Pass, verdict.NotMeasured)}, report.NotMeasured},
		"fail":         {report.Cell{Artifacts: wheel, Verdicts: verdicts(verdict.NotMeasured, verdict.Fail, verdict.Pass)}, report.Fail},
		"error":        {report.Cell{Verdicts: verdicts(verdict.Fail), Error: &report.CellError{}}, report.Errored},
	} {
		check.Same(t, name, c.want, report.StatusOf(c.cell))
	}
}

func TestRecorderKeepsInputOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.json")
	run := planned(20)
	recorder := must.Get(report.NewRecorder(path, run))(t)
	var all sync.WaitGroup
	for _, cell := range run.Cells {
		all.Go(func() {
			err := recorder.Update(finished(cell))
			check.That(t, err == nil, "%v", err)
			// Readers see a complete file at any time.
			_, err = report.Read(path)
			check.That(t, err == nil, "%v", err)
		})
	}
	all.Wait()
	returned := must.Get(recorder.Finish(time.Now()))(t)
	read := must.Get(report.Read(path))(t)
	for i, cell := range run.Cells {
		for _, got := range []report.Cell{returned.Cells[i], read.Cells[i]} {
			check.That(t, got.ID == cell.ID && got.Status == report.Pass,
				"cell %d: got %s %s, want %s pass", i, got.ID, got.Status, cell.ID)
		}
	}
	check.That(t, returned.Schema == report.Schema, "the returned run has schema %d, want %d", returned.Schema, report.Schema)
	check.That(t, !read.Finished.IsZero(), "a finished run does not say when")
	left := names(t, filepath.Dir(path))
	check.That(t, len(left) == 1, "left behind: %v", left)
}

func TestRecorderRefusesCellsItDoesNotKnow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.json")
	recorder := must.Get(report.NewRecorder(path, planned(1)))(t)
	check.That(t, recorder.Update(report.Cell{ID: "other"}) != nil, "an unknown cell was recorded")
}

func TestSummary(t *testing.T) {
	run := example()
	run.Cells[0].Verdicts = append(run.Cells[0].Verdicts,
		verdict.Verdict{Gate: "size", Status: verdict.Waived, Waiver: &recipe.Waiver{Until: "2026-12-31"}}, verdict.Verdict{Gate: "transport"}, verdict.Verdict{Gate: "rdma", Status: verdict.Fail})
	header, rows := report.Summary(run)
	got := append([][]string{header}, rows...)
	want := [][]string{
		{"cell", "status", "from", "wheel", "gates", "time"},
		{"horovod-0.28.1+rocm5.7-cp311", "fail", "build", "horovod-0.28.1.whl", "1 pass, 1 not-measured, 1 waived: size until 2026-12-31, 2 fail: check-build, rdma", "1m25s"},
		{"horovod-0.28.1+rocm6.1-cp311", "error: build", "-", "-", "-", "0.0s"},
		{"horovod-0.28.1+rocm6.2-cp311", "skipped", "-", "-", "-", "0.0s"},
	}
	check.Same(t, "values", want, got)
}

// A stored result shows its time in this run.
func TestSummaryOfAStoredResult(t *testing.T) {
	cell := report.Cell{ID: "a", From: report.Store, Taken: 0.1, Steps: []report.Step{{Name: "build", Seconds: 465, Cached: true}}}
	_, rows := report.Summary(report.Run{Cells: []report.Cell{cell}})
	check.Same(t, "the duration", "0.1s", rows[0][5])
}

func planned(n int) report.Run {
	var run report.Run
	for i := range n {
		run.Cells = append(run.Cells, report.Cell{ID: fmt.Sprintf("cell-%d", n-i), Recipe: "test"})
	}
	return run
}

func finished(cell report.Cell) report.Cell {
	cell.From = report.Build
	cell.Artifacts = []artifact.Artifact{{Name: cell.ID + ".whl", SHA256: strings.Repeat("0", 64)}}
	cell.Verdicts = []verdict.Verdict{{Gate: "import", Status: verdict.Pass}}
	return cell
}

func contents(t *testing.T, path string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(path))(t))
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries := must.Get(os.ReadDir(dir))(t)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
