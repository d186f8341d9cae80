package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
)

// The hints of what an interruption stopped are not printed: the index and the mirror are
// fine.
func TestInterrupted(t *testing.T) {
	signal := errors.New("interrupt signal received")
	cause := fmt.Errorf("fetching uv with pip: %w", signal)
	other := diag.Errorf(diag.Build, "the build failed").WithHint("read the log")
	err := errors.Join(&diag.Error{Code: diag.Fetch, Err: cause, Hint: "pip's own configuration names the index", Log: []string{"Aborted"}}, other)
	for run, want := range map[bool]string{true: "give the same command again: it continues after the finished steps", false: ""} {
		all := diag.All(interrupted(err, signal, run))
		check.That(t, len(all) == 2 && all[0].Hint == want && all[0].Log == nil && all[1].Hint == "read the log",
			"run %v: %+v, %+v", run, all[0], all[1])
	}
	mirror := diag.Errorf(diag.Fetch, "resolving packages: %s", "context canceled").WithHint("name other mirrors")
	all := diag.All(interrupted(mirror, signal, false))
	check.That(t, all[0].Hint == "", "%+v", all)
	all = diag.All(interrupted(signal, signal, true))
	check.That(t, len(all) == 1 && strings.HasPrefix(all[0].Hint, "give the same command again"), "%+v", all)
}
