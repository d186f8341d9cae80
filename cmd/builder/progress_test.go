package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/view/progress"
	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/must"
	"builder/test/kit/recipetest"
)

const eventSchema = "../../docs/progress.schema.json"

func TestProgressSchema(t *testing.T) {
	golden.CheckFile(t, eventSchema, recipetest.Schema(&progress.Event{}))
	page, err := os.ReadFile("../../docs/progress.md")
	must.Succeed(t, err)
	for _, kind := range progress.Kinds() {
		check.That(t, strings.Contains(string(page), "\n| `"+string(kind)+"` |"), "docs/progress.md does not explain the event %s", kind)
		check.That(t, strings.Contains(string(recipetest.Schema(&progress.Event{})), `"`+string(kind)+`"`),
			"the schema does not know the event %s", kind)
	}
}

func TestProgressFlag(t *testing.T) {
	t.Setenv("BUILDER_RECIPES", "")
	t.Setenv("BUILDER_HOME", t.TempDir())
	for _, c := range []struct{ format, says string }{
		{"frob", `--progress: unknown format "frob"`},
		{"jsn", `did you mean "json"`},
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
