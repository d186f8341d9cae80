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

// A finding in a wheel names the file inside it. Control characters of a log do not
// reach the terminal.
func TestPrintFinding(t *testing.T) {
	var stdout bytes.Buffer
	f := diagnose.Finding{Diagnosis: diagnose.Diagnosis{Name: "x", Severity: diagnose.Error}, Member: "a/b.so", Text: "needs: \x1b]0;owned\x07evil\u202e", Count: 1}
	Diagnosed(term.Printer{Stdout: &stdout}, []judge.Examined{
		{Report: diagnose.Report{File: "a.whl", Kind: "wheel", Lines: 3, Findings: []diagnose.Finding{f}}},
		{Report: diagnose.Report{File: "b.so", Kind: "library", Lines: 1}},
	})
	got := stdout.String()
	for _, want := range []string{"a.whl: a/b.so: error: x\n    needs: evil\n", "b.so: no known failure in a library (1 fact)\n", "2 files: 1 error, 0 warnings, 0 notes\n"} {
		check.That(t, strings.Contains(got, want), "lacks %q:\n%s", want, got)
	}
}
