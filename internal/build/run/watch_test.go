package run_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/view/progress"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// The log of a failed step ends with its error, also after output: a patch may fail
// after others. An error that repeats the output is not added.
func TestLogEndsWithTheError(t *testing.T) {
	at := diag.Pos{File: "site/patches/tool/b.yaml", Line: 7}
	patch := errors.Join(&diag.Error{Pos: at, Code: diag.Patch, Err: errors.New("a.c: no match; the closest line is 3")}, errors.New("other"))
	said := &diag.Error{Code: diag.Build, Err: errors.New("exit 1"), Log: []string{"cc: no"}}
	for _, c := range []struct {
		output string
		err    error
		want   string
	}{
		{"a: applied\n", patch, "a: applied\nsite/patches/tool/b.yaml:7: a.c: no match; the closest line is 3\nother\n"},
		{"cc: no\n", said, "cc: no\n"},
		{"", said, "exit 1\ncc: no\n"},
		{"done\n", nil, "done\n"},
	} {
		dir := t.TempDir()
		events := run.Watch(dir, progress.New(io.Discard, progress.Options{Format: progress.Plain}))("tool-1")
		if log := events.StepStarted("patch"); c.output != "" {
			fmt.Fprint(log, c.output)
		}
		events.StepDone("patch", 0, false, c.err)
		got, err := os.ReadFile(filepath.Join(dir, run.LogOf("tool-1", "patch")))
		check.That(t, err == nil && string(got) == c.want, "%v: %q, want %q", err, got, c.want)
	}
}

// A directory of results may come from an untrusted machine: no log is written through a
// link.
func TestALogReplacesALink(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, run.LogOf("tool-1", "patch"))
	secret := filepath.Join(dir, "secret")
	must.Succeed(t, os.WriteFile(secret, []byte("kept"), 0o600), os.MkdirAll(filepath.Dir(log), 0o755), os.Symlink(secret, log))
	events := run.Watch(dir, progress.New(io.Discard, progress.Options{}))("tool-1")
	fmt.Fprint(events.StepStarted("patch"), "written")
	events.StepDone("patch", 0, false, nil)
	data, err := os.ReadFile(secret)
	check.That(t, err == nil && string(data) == "kept", "%q, %v", data, err)
}
