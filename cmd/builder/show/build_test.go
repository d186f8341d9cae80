package show

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"builder/internal/app/judge"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/plan/diagnose"
	"builder/internal/plan/lock"
	"builder/internal/view/report"
	"builder/internal/view/term"
	"builder/test/kit/check"
)

// The end of a run names the digest and the signer of a wheel, the page, and the next command
// if all cells passed.
func TestRun(t *testing.T) {
	cell := report.Cell{
		ID: "tool-1", Signers: []string{"a2V5"}, Verdicts: []verdict.Verdict{{Gate: "import", Status: verdict.Pass}},
		Artifacts: []artifact.Artifact{{Name: "tool.whl", Path: "o/tool-1/tool.whl", SHA256: "aa"}, {Name: "more.txt", Path: "o/tool-1/more.txt", SHA256: "bb"}},
	}
	ended := func(cells ...report.Cell) string {
		var out, notes bytes.Buffer
		Run(term.Printer{Stdout: &out, Stderr: &notes}, report.Run{Cells: cells}, "o")
		_, rows, _ := strings.Cut(out.String(), "o/")
		return rows
	}
	want := "tool-1/tool.whl\n  sha256:aa, signed by a2V5\no/tool-1/more.txt\npage: o/report.html\n"
	check.Same(t, "all passed", want+"next: uv pip install o/tool-1/tool.whl\n", ended(cell))
	check.Same(t, "one failed", want, ended(cell, report.Cell{ID: "tool-2", Error: &report.CellError{Code: "build"}}))
}

// Control characters of a log do not reach the terminal.
func TestPrintFinding(t *testing.T) {
	var stdout bytes.Buffer
	f := diagnose.Finding{Diagnosis: diagnose.Diagnosis{Name: "x", Severity: diagnose.Error}, Line: 2, Text: "needs: \x1b]0;owned\x07evil\u202e", Count: 1}
	Diagnosed(term.Printer{Stdout: &stdout}, []judge.Examined{
		{Report: diagnose.Report{File: "a.log", Lines: 3, Findings: []diagnose.Finding{f}}},
		{Report: diagnose.Report{File: "b.log", Lines: 1}},
	})
	got := stdout.String()
	for _, want := range []string{"a.log:2: error: x\n    needs: evil\n", "b.log: no known failure in 1 line, and none shows NCCL or RCCL at work\n", "2 files: 1 error, 0 warnings, 0 notes\n"} {
		check.That(t, strings.Contains(got, want), "lacks %q:\n%s", want, got)
	}
}

// TestLockRows: many new pins of a kind share a row, and a changed pin has its own.
func TestLockRows(t *testing.T) {
	changes := []lock.PinChange{{Kind: "image", Name: "debian-13", Is: "2026-11-01"}}
	for i := range manyPins {
		changes = append(changes, lock.PinChange{Kind: "package", Name: fmt.Sprint("p", i), Is: "1"})
	}
	changes = append(changes, lock.PinChange{Kind: "package", Name: "z", Was: "1", Is: "2"})
	want := [][]string{
		{"image", "debian-13", "-", "2026-11-01"},
		{"package", "20 new", "-", "in the lock"},
		{"package", "z", "1", "2"},
	}
	check.Same(t, "rows", want, lockRows(changes))
	check.Same(t, "rows for pins", manyPins-1, len(lockRows(changes[1:manyPins])))
}
