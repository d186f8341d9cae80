package diag_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"builder/internal/base/diag"
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
		if got := diag.CodeOf(c.err); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestPosition(t *testing.T) {
	err := diag.At(diag.Pos{File: "recipes/horovod.yaml", Line: 14, Column: 11}, "quote the version %s", "2.10")
	if got, want := err.Error(), "recipes/horovod.yaml:14:11: quote the version 2.10"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err.Code != diag.Usage {
		t.Errorf("a fault in a file is a fault of usage, got %v", err.Code)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"rocm", "tensorflow", "python", "--jobs", "-o"}
	for word, want := range map[string]string{
		"rcom": "rocm", "tensorfow": "tensorflow", "ROCM": "rocm", "zzzzzzzz": "",
		"--jbos": "--jobs", "jobs": "--jobs", "-q": "", "--xy": "",
	} {
		if got := diag.Nearest(word, known); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

func TestAllKeepsContext(t *testing.T) {
	inner := diag.Errorf(diag.Build, "exit 1").WithHint("look here")
	all := diag.All(errors.Join(fmt.Errorf("building a: %w", inner), errors.New("b")))
	if len(all) != 2 || all[0].Error() != "building a: exit 1" || all[0].Hint != "look here" || all[1].Code != diag.Unexpected {
		t.Errorf("got %+v", all)
	}
	around := diag.All(diag.Errorf(diag.Usage, "--to: %w", inner))
	if len(around) != 1 || around[0].Error() != "--to: exit 1" || around[0].Hint != "look here" || around[0].Code != diag.Usage {
		t.Errorf("around a fault: %+v", around)
	}
}
