package main

import (
	"bytes"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
)

func TestProgressFlag(t *testing.T) {
	t.Setenv("BUILDER_RECIPES", "")
	t.Setenv("BUILDER_HOME", t.TempDir())
	for _, c := range []struct{ format, says string }{
		{"frob", `--progress: unknown format "frob"`},
		{"githb", `did you mean "github"`},
		{"live", "stderr is not a terminal that can move its cursor"},
	} {
		code, _, stderr := builder("run", "horovod", "--rocm", "5.7", "--out", t.TempDir(), "--progress", c.format)
		check.That(t, code == diag.Usage && strings.Contains(stderr, c.says), "%s: exit code %d\n%s", c.format, code, stderr)
	}
}

// builder runs a command line in this process.
func builder(args ...string) (code diag.Code, stdout, stderr string) {
	var out, errs bytes.Buffer
	n := Main(append([]string{"builder"}, args...), &out, &errs)
	return diag.Code(n), out.String(), errs.String()
}
