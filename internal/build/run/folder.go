package run

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/build/steplog"
	"builder/internal/evidence/attest"
	"builder/internal/files/artifact"
	"builder/internal/plan/lock"
	"builder/internal/plan/stack"
)

// setAside moves refused artifacts to artifact.RejectedDir, so they are not mistaken for good
// ones.
func setAside(dir string, artifacts []artifact.Artifact) ([]artifact.Artifact, error) {
	if err := os.MkdirAll(filepath.Join(dir, artifact.RejectedDir), 0o755); err != nil {
		return artifacts, err
	}
	var moved []artifact.Artifact
	var errs []error
	for _, a := range artifacts {
		errs = append(errs, os.RemoveAll(attest.Dir(a.Path))) // its attestations would vouch for a refused wheel
		to := filepath.Join(dir, artifact.RejectedDir, a.Name)
		errs = append(errs, os.MkdirAll(filepath.Dir(to), 0o755))
		if err := os.Rename(a.Path, to); err != nil {
			errs = append(errs, err)
		} else {
			a.Path = to
		}
		moved = append(moved, a)
	}
	if err := os.Remove(filepath.Join(dir, stack.Folder)); !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err) // Remove fails if it is not empty
	}
	return moved, errors.Join(errs...)
}

// removeOthers removes all files of an earlier run with other inputs, its logs too. A
// directory without an entry may hold anything and is left alone.
func removeOthers(dir string, e lock.Entry) error {
	old, err := os.ReadFile(filepath.Join(dir, lock.EntryFile))
	if err != nil || bytes.Equal(old, e.Canonical()) {
		return nil // the caller writes the entry, which reports any fault of the directory
	}
	return errors.Join(
		removeStale(dir),
		os.RemoveAll(filepath.Join(dir, TestsDir)),
		os.RemoveAll(filepath.Join(dir, RebuiltDir)),
		os.RemoveAll(filepath.Join(dir, steplog.Dir)),
	)
}

// removeStale removes the files of an earlier run of this cell: good and refused
// artifacts and their attestations. It keeps the entry, which is already the one of
// this run, the given artifacts with their attestations, and other directories, such as
// the logs.
func removeStale(dir string, keep ...artifact.Artifact) error {
	kept := []string{filepath.Join(dir, lock.EntryFile)}
	for _, a := range keep {
		path := filepath.Join(dir, a.Name)
		kept = append(kept, path, attest.Dir(path))
	}
	for _, place := range []string{dir, filepath.Join(dir, artifact.RejectedDir)} {
		old, err := os.ReadDir(place)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, file := range old {
			path := filepath.Join(place, file.Name())
			of := strings.HasSuffix(file.Name(), attest.Dir("")) || file.Name() == stack.Folder
			if file.IsDir() && !of || slices.Contains(kept, path) {
				continue
			}
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	_ = os.Remove(filepath.Join(dir, artifact.RejectedDir)) // unless files of others are in it
	return nil
}

// keepBack sets the artifacts aside and returns an error if a gate refuses them.
func keepBack(dir string, result *Result) error {
	err := refusal(result.Verdicts)
	if err == nil {
		return nil
	}
	aside, moved := setAside(dir, result.Artifacts)
	result.Artifacts = aside
	return errors.Join(err, moved)
}
