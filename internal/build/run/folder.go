package run

import (
	"errors"
	"os"
	"path/filepath"

	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
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
		if err := os.Rename(a.Path, to); err != nil {
			errs = append(errs, err)
		} else {
			a.Path = to
		}
		moved = append(moved, a)
	}
	return moved, errors.Join(errs...)
}

// keepBack sets the artifacts aside and returns an error if a gate refuses them.
func keepBack(dir string, result Result) (Result, error) {
	err := verdict.Refusals("", result.Verdicts)
	if len(result.Verdicts) == 0 {
		err = diag.Errorf(diag.Gate, "no gate checked the artifact").
			WithHint("state in the recipe's expect a promise that a gate can check")
	}
	if err == nil {
		return result, nil
	}
	aside, moved := setAside(dir, result.Artifacts)
	result.Artifacts = aside
	return result, errors.Join(err, moved)
}
