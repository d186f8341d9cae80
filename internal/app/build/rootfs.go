package build

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/app/home"
	"builder/internal/app/host"
	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/base/shell"
	"builder/internal/build/run"
	"builder/internal/files/artifact"
	"builder/internal/plan/lock"
	"builder/internal/view/report"
	"builder/pipelines"
)

// WriteStepRootfs writes the file system of an entry's cell at the start of a step to
// dir, with scripts to work in it. It removes a directory that it made if it fails.
func WriteStepRootfs(ctx context.Context, s Setup, e lock.Entry, step, dir string) error {
	w, err := home.Open(ctx, s.Keys, s.NoInstall)
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
		err = host.Preflight(ctx, s.Setup, []lock.Entry{e})
	}
	watch := run.Watch(filepath.Join(dir, "logs"), s.Display)(e.ID)
	if err == nil {
		err = run.Fetch(ctx, watch, s.Sources.Fetcher(w), e)
	}
	var engine *pipelines.Engine
	if err == nil {
		engine, err = host.Engine(ctx, s.Setup, w)
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
	id, err := findByName(cell, ids)
	if err != nil {
		return lock.Entry{}, err
	}
	e, err := lock.ReadEntry(filepath.Join(out, id))
	if err == nil && e.Pipeline != plan.Revision() {
		err = diag.Errorf(diag.Drift, "%s was built with other scripts than those of this builder", id).WithHint("build it again first, with the command that built it: `builder run %s` with its axes, and with --recipes if the recipe is yours", e.Recipe)
	}
	return e, err
}

// findByName finds the cell identified by a word: by its full id, its prefix, or any part
// of its id.
func findByName(word string, ids []string) (string, error) {
	for _, matches := range []func(id, word string) bool{
		func(id, word string) bool { return id == word }, strings.HasPrefix, strings.Contains,
	} {
		found := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !matches(id, word) })
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return "", diag.Errorf(diag.Usage, "%q matches %d cells", word, len(found)).WithHint("write more of the name: %s", strings.Join(found, ", "))
		}
	}
	if len(ids) == 0 {
		return "", diag.Errorf(diag.Usage, "unknown cell %q: the results have none", word).
			WithHint("`builder run RECIPE` writes cells below the directory of --out (out)")
	}
	return "", diag.Errorf(diag.Usage, "unknown cell %q", word).WithHint("%s", diag.DidYouMean(word, ids))
}

// SiteOf returns the site of the recipes in the last run of a cell, or "".
func SiteOf(out, id string) string { return lastRun(out, id).Recipes }

// StepToDebug returns the step that failed in the last run of a cell, if it is one of
// [DebugSteps], and otherwise the build step.
func StepToDebug(out, id string) string {
	for _, s := range lastRun(out, id).Steps {
		if s.Failed && slices.Contains(DebugSteps(), s.Name) {
			return s.Name
		}
	}
	return pipelines.LastStep
}

// lastRun returns the record of a cell in the last run. It is empty if the run did not
// have the cell, or if there is no record.
func lastRun(out, id string) report.Cell {
	last, err := report.Read(filepath.Join(out, "run.json"))
	if err != nil {
		return report.Cell{}
	}
	for _, c := range last.Cells {
		if c.ID == id {
			return c
		}
	}
	return report.Cell{}
}

// DebugSteps returns the steps with a file system at their start.
func DebugSteps() []string { return pipelines.Names()[1:] }

// builtInputs returns the wheels of e's input cells. It is an error if one has not been
// built.
func builtInputs(w *home.Workspace, e lock.Entry) ([]artifact.Artifact, error) {
	var wheels []artifact.Artifact
	for _, in := range e.Inputs {
		found, ok, err := w.Results.Find(in.Key, filepath.Join(w.Scratch, "inputs", in.Key))
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
	words := []string{"builder", "debug", "shell", o.Entry.ID}
	if step != pipelines.LastStep {
		words = append(words, step)
	}
	if out != "out" {
		words = append(words, "--out", out)
	}
	return shell.Line(words...)
}
