package show

import (
	"bytes"
	"strings"
	"testing"

	"builder/internal/app/judge"
	"builder/internal/plan/diagnose"
	"builder/internal/view/term"
	"builder/test/kit/check"
)

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
