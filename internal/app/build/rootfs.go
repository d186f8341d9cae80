package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"builder/internal/app/home"
	"builder/internal/app/host"
	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/build/runlog"
	"builder/internal/files/artifact"
	"builder/internal/plan/lock"
	"builder/internal/view/report"
	"builder/pipelines"
)

// WriteStepRootfs writes the file system of an entry's cell at the start of a step to
// dir, with scripts to work in it. It removes a directory that it made if it fails.
func WriteStepRootfs(ctx context.Context, s Setup, e lock.Entry, step, dir string) error {
	w, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	inputs, err := builtInputs(w, e)
	if err != nil {
		return err
	}
	_, err = os.Lstat(dir)
	ours := errors.Is(err, fs.ErrNotExist)
	if err = os.MkdirAll(dir, 0o755); err == nil { // before minutes of work
		err = s.preflight(ctx, []lock.Entry{e})
	}
	watch := run.NewWatch(filepath.Join(dir, "logs"), e.ID, s.Display)
	if err == nil {
		err = run.Fetch(ctx, watch, s.Sources.Fetcher(w), e)
	}
	var engine *pipelines.Engine
	if err == nil {
		engine, err = host.FirstEngine(ctx, s.Setup, w)
	}
	if err == nil {
		err = engine.Rootfs(ctx, run.Job{Entry: e, Inputs: inputs, Dir: dir}, step, watch)
	}
	if err != nil && ours { // half of a file system helps nobody, and the next try needs the name
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// EntryOf returns the entry of a cell below out. cell is its id or a part of it.
func EntryOf(out, cell string) (lock.Entry, error) {
	found, err := filepath.Glob(filepath.Join(out, "*", lock.EntryFile))
	if err != nil {
		return lock.Entry{}, diag.Errorf(diag.Usage, "--out: %w", err)
	}
	var ids []string
	for _, path := range found {
		ids = append(ids, filepath.Base(filepath.Dir(path)))
	}
	id, err := runlog.FindByName("cell", cell, ids, func(id string) string { return id })
	if err != nil {
		return lock.Entry{}, err
	}
	e, err := lock.ReadEntry(filepath.Join(out, id))
	if err == nil && e.Pipeline != plan.Revision() {
		err = diag.Errorf(diag.Drift, "%s was built with other scripts than those of this builder", id).WithHint("build it again first, with the command that built it: `builder run %s` with its axes, and with --recipes if the recipe is yours", e.Recipe)
	}
	return e, err
}

// SiteOf returns the site of the recipes in the last run of a cell, or "".
func SiteOf(out, id string) string {
	last, err := report.Read(filepath.Join(out, "run.json"))
	if err != nil {
		return ""
	}
	for _, c := range last.Cells {
		if c.ID == id {
			return c.Recipes
		}
	}
	return ""
}

// StepToDebug returns the step that failed in the last run of a cell, if it is one of
// [DebugSteps], and otherwise the build step. A directory without the record of a run
// tells nothing about steps.
func StepToDebug(out, cell string) string {
	root, cells, err := runlog.Open(runlog.Request{Out: out, Cell: cell})
	if err != nil {
		return pipelines.LastStep
	}
	defer root.Close()
	for _, c := range cells {
		if c.Failed >= 0 && slices.Contains(DebugSteps(), c.Steps[c.Failed].Step) {
			return c.Steps[c.Failed].Step
		}
	}
	return pipelines.LastStep
}

// DebugSteps returns the steps with a file system at their start.
func DebugSteps() []string { return pipelines.Names()[1:] }

// builtInputs returns the wheels of e's input cells. It is an error if one has not been
// built.
func builtInputs(w *home.Workspace, e lock.Entry) ([]artifact.Artifact, error) {
	var wheels []artifact.Artifact
	for _, in := range e.Inputs {
		found, ok, err := w.Results.FindKey(in.Key, filepath.Join(w.Scratch, "inputs", in.Key))
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, diag.Errorf(diag.Usage, "the input %s is not built", in.ID).WithHint("build it first with `builder run %s` and the same axes", e.Recipe)
		}
		wheels = append(wheels, found.Artifacts[0])
	}
	return wheels, nil
}

// shellAt returns the command to open a shell at the failed step of a cell, or "" if
// the step has no file system.
func shellAt(o run.Outcome, out string) string {
	if len(o.Steps) == 0 {
		return ""
	}
	step := o.Steps[len(o.Steps)-1].Name
	if !slices.Contains(DebugSteps(), step) {
		return ""
	}
	command := "builder debug shell " + o.Entry.ID
	if step != pipelines.LastStep {
		command += " " + step
	}
	if out != "out" {
		command += " --out " + out
	}
	return fmt.Sprintf("`%s` opens a shell where it failed; --to DIR keeps your changes there", command)
}
