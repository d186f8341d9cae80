package diag_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
)

func TestCodeOf(t *testing.T) {
	gate := diag.Errorf(diag.Gate, "refused")
	fetch := diag.Errorf(diag.Fetch, "unreachable")
	for name, c := range map[string]struct {
		err  error
		want diag.Code
	}{
		"nil":         {nil, diag.OK},
		"plain":       {errors.New("x"), diag.Unexpected},
		"wrapped":     {fmt.Errorf("cell: %w", gate), diag.Gate},
		"joined":      {errors.Join(fetch, fmt.Errorf("cell: %w", gate)), diag.Fetch},
		"interrupted": {fmt.Errorf("cell: %w", context.Canceled), diag.Interrupted},
	} {
		check.Same(t, name, c.want, diag.CodeOf(c.err))
	}
}

func TestPosition(t *testing.T) {
	err := diag.At(diag.Pos{File: "recipes/horovod.yaml", Line: 14, Column: 11}, "quote the version %s", "2.10")
	if got, want := err.Error(), "recipes/horovod.yaml:14:11: quote the version 2.10"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	check.That(t, err.Code == diag.Usage, "a fault in a file is a fault of usage, got %v", err.Code)
}

func TestNearest(t *testing.T) {
	known := []string{"rocm", "tensorflow", "python", "--jobs", "-o"}
	for word, want := range map[string]string{
		"rcom": "rocm", "tensorfow": "tensorflow", "ROCM": "rocm", "zzzzzzzz": "",
		"--jbos": "--jobs", "jobs": "--jobs", "-q": "", "--xy": "",
	} {
		check.Same(t, word, want, diag.Nearest(word, known))
	}
}

func TestAllKeepsContext(t *testing.T) {
	inner := diag.Errorf(diag.Build, "exit 1").WithHint("look here")
	all := diag.All(errors.Join(fmt.Errorf("building a: %w", inner), errors.New("b")))
	check.That(t, len(all) == 2 && all[0].Error() == "building a: exit 1" && all[0].Hint == "look here" && all[1].Code == diag.Unexpected,
		"got %+v", all)
	around := diag.All(diag.Errorf(diag.Usage, "--to: %w", inner))
	check.That(t, len(around) == 1 && around[0].Error() == "--to: exit 1" && around[0].Hint == "look here" && around[0].Code == diag.Usage,
		"around a fault: %+v", around)
}
