// Package build holds the verbs that build cells and handle what a build leaves: run with
// its logs and reports, the second build, and the file system of a step.
package build

import (
	"context"

	"builder/internal/app/home"
	"builder/internal/app/host"
	"builder/internal/build/run"
	"builder/internal/plan/lock"
	"builder/internal/view/progress"
)

// A Setup is the state that the verbs of this package share.
type Setup struct {
	host.Setup
	Display *progress.Display // receives the events of cells; required by verbs that build

	// Builder replaces the engines; nil outside tests. With it the host is not checked.
	Builder run.Engine
}

// engine returns the engine that builds the cells of a run.
func (s Setup) engine(w *home.Workspace) *run.Retrying {
	if s.Builder == nil {
		return host.Retrying(s.Setup, w)
	}
	up := func(context.Context) (run.Engine, error) { return s.Builder, nil }
	return &run.Retrying{Name: "here", Up: up, Prune: func(context.Context) error { return nil }, Note: s.Keys.Note}
}

// preflight returns an error if this host cannot build the entries.
func (s Setup) preflight(ctx context.Context, entries []lock.Entry) error {
	if s.Builder != nil {
		return nil
	}
	return host.Preflight(ctx, s.Setup, entries)
}
