package pypi

import (
	"context"
	"errors"
	"strings"
	"time"

	"builder/internal/base/diag"
)

// A Release is one version of a project in the index.
type Release struct {
	Version  string
	Uploaded time.Time // zero if the index does not say
}

// most bounds the releases of one question.
const most = 30

// Newer returns the final releases after a version that were uploaded before a time and
// support a Python ("3.12") or later ones, newest first. upTo returns the bound for the next question: the version itself, or
// its first numbers if only one of several is wanted.
func (t Tool) Newer(ctx context.Context, scratch, project, than, python string, before time.Time, upTo func(string) string) ([]Release, error) {
	if _, err := exact(project, than); err != nil {
		return nil, diag.Errorf(diag.Usage, "asking for releases: %w", err)
	}
	var all []Release
	wanted := project + ">" + than
	for line := wanted; len(all) < most; {
		found, err := t.compile(ctx, scratch, inputs{requirements: []string{line}},
			"--no-deps", "--universal", "--python-version", python, "--exclude-newer", before.UTC().Format(time.RFC3339))
		if e, ok := errors.AsType[*diag.Error](err); ok && strings.Contains(strings.Join(e.Log, "\n"), "No solution found") {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		if len(found) != 1 {
			return all, diag.Errorf(diag.Fetch, "the index answers %s with %d projects", line, len(found))
		}
		all = append(all, Release{found[0].version, found[0].uploaded})
		bound := upTo(found[0].version)
		if _, err := exact(project, bound); err != nil {
			return all, diag.Errorf(diag.Fetch, "asking for releases: %w", err)
		}
		line = wanted + ",<" + bound
	}
	return all, nil
}
