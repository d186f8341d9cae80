package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"builder/internal/app"
	"builder/internal/app/catalogue"
	"builder/internal/plan/diagnose"
)

// Options named in remedies must exist.
func TestDiagnosesNameOptions(t *testing.T) {
	known, err := catalogue.Catalogue{}.Diagnoses()
	if err != nil {
		t.Fatal(err)
	}
	options := []string{"BUILDER_HOME"} // read by homeDir
	for _, name := range flagNames(runFlags()) {
		options = append(options, "--"+name)
	}
	for _, d := range known {
		if d.MendedBy != nil && d.MendedBy.Option != "" && !slices.Contains(options, d.MendedBy.Option) {
			t.Errorf("%s is mended by %s, which does not exist", d.Name, d.MendedBy.Option)
		}
	}
}

// A finding in a wheel names the file inside it. Control characters of a log do not
// reach the terminal.
func TestPrintFinding(t *testing.T) {
	var stdout bytes.Buffer
	f := diagnose.Finding{Diagnosis: diagnose.Diagnosis{Name: "x", Severity: diagnose.Error}, Member: "a/b.so", Text: "needs: \x1b]0;owned\x07evil\u202e", Count: 1}
	printReports(printer{stdout: &stdout}, []app.Examined{
		{Report: diagnose.Report{File: "a.whl", Kind: "wheel", Lines: 3, Findings: []diagnose.Finding{f}}},
		{Report: diagnose.Report{File: "b.so", Kind: "library", Lines: 1}},
	})
	got := stdout.String()
	for _, want := range []string{"a.whl: a/b.so: error: x\n    needs: evil\n", "b.so: no known failure in a library (1 fact)\n", "2 files: 1 error, 0 warnings, 0 notes\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
}
