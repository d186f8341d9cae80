package judge

import (
	"context"
	"fmt"

	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/files/artifact"
	"builder/internal/files/wheel"
	"builder/internal/gates/environment"
	"builder/internal/input/pypi"
)

// maxShown bounds the shown differences of an installation.
const maxShown = 20

// compareInstalled compares a verified wheel with its installation in an environment.
func compareInstalled(ctx context.Context, env string, a artifact.Artifact) (attest.Check, error) {
	sites, err := environment.Packages(env)
	if err != nil {
		return attest.Check{}, diag.Errorf(diag.Usage, "--env: %w", err).
			WithHint("name a Python interpreter, a virtual environment, or a site-packages directory")
	}
	w, err := wheel.Open(a.Path)
	if err != nil {
		return attest.Check{}, diag.Errorf(diag.Gate, "--env: %w", err)
	}
	defer w.Close()
	equal, wrong, err := w.CompareInstalled(ctx, sites)
	if err != nil {
		return attest.Check{}, diag.Errorf(diag.Gate, "%s: %w", a.Name, err).WithHint("name the environment in which it is installed, and the wheel of the installed version")
	}
	if more := len(wrong) - maxShown; more > 0 {
		wrong = append(wrong[:maxShown:maxShown], fmt.Sprintf("and %d more", more))
	}
	check := attest.Check{Name: "installed", Wrong: wrong, Seen: fmt.Sprintf("%d installed files are those of the wheel", equal)}
	if len(wrong) > 0 {
		file := pypi.File{Project: w.Name.Distribution, Version: w.Name.Version, SHA256: a.SHA256}
		check.Remedy = fmt.Sprintf("install it again by its digest: put the line `%s` into a file and run pip install --force-reinstall --no-deps --require-hashes -r FILE", file.Exact())
	}
	return check, nil
}
