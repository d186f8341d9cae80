package main

import (
	"slices"
	"testing"

	"builder/internal/plan/catalogue"
	"builder/test/kit/must"
)

// Options named in remedies must exist.
func TestDiagnosesNameOptions(t *testing.T) {
	known, err := catalogue.Catalogue{}.Diagnoses()
	must.Succeed(t, err)
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
