package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"builder/internal/app/judge"
	"builder/internal/plan/catalogue"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// Options named in remedies must exist.
func TestDiagnosesNameOptions(t *testing.T) {
	known := must.Get(catalogue.Catalogue{}.Diagnoses())(t)
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

// silent is an input on which nothing arrives before the end of a test.
type silent struct {
	asked func()
	end   <-chan struct{}
}

func (s silent) Read([]byte) (int, error) {
	s.asked()
	<-s.end
	return 0, io.EOF
}

// An interruption ends the wait for standard input.
func TestDiagnoseStopsWaiting(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	signal := errors.New("interrupt signal received")
	in := silent{func() { stop(signal) }, t.Context().Done()}
	_, err := judge.Diagnose(ctx, catalogue.Catalogue{}, []string{"-"}, in)
	check.That(t, errors.Is(err, signal), "got %v", err)
}
