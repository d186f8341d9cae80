package report_test

import (
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// Text of a run is never read as Markdown or HTML.
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
	fault := "- a|b: build: <img"
	check.That(t, strings.Contains(html.UnescapeString(page), "\n"+fault), "%q is not in\n%s", fault, page)
}

// The first lines of the log stand below the message, and cells that failed for different
// causes apart.
func TestMarkdownOfACause(t *testing.T) {
	one, other := failed("a", "build"), failed("b", "build")
	one.Error.Cause, one.Error.Hint = []string{"a.c:1: error: no b", "1 x"}, "mend it"
	page := report.Markdown(report.Run{Cells: []report.Cell{one, other}})
	want := "- a: build: it stopped\n  - a.c:1: error: no b\n  - 1 x\n  - mend it\n- b: build: it stopped\n"
	check.That(t, strings.HasSuffix(page, want), "%q does not end\n%s", want, page)
}

// FuzzRead reads and prints an arbitrary run.json.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"schema":1,"cells":[{"id":"a","verdicts":[{"gate":"g","status":"fail"}]}]}`))
	f.Add([]byte(`{"schema": 1, "cells": [{"id": "a", "artifacts": [{"name": "..", "path": "/a/"}], "error": {}}]}`))
	path := filepath.Join(f.TempDir(), "run.json")
	f.Fuzz(func(t *testing.T, content []byte) {
		must.Succeed(t, os.WriteFile(path, content, 0o600))
		run, err := report.Read(path)
		if err != nil {
			return
		}
		page := report.Markdown(run)
		check.That(t, len(page) <= 1<<20, "%d bytes", len(page))
	})
}
