package recipe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"builder/internal/gates/gate"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
)

// An archive must not promise properties of a wheel, and its name must have an archive
// suffix.
func TestTreeAlone(t *testing.T) {
	with := func(expect, more string) string {
		return strings.Replace(good, "expect: {launcher: mpi}", "expect: "+expect, 1) + more
	}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"right": {with(`{tree: "tool-{{version}}.tar.gz", version: "1", size: 1KB..2KB}`, ""), nil},
		"of a wheel": {with("{tree: tool.txz, launcher: mpi, packages: [tool]}", ""), []string{
			"recipes/tool.yaml:23:36: expect.launcher is for wheels, and expect.tree makes the artifact an archive",
			"recipes/tool.yaml:23:51: expect.packages is for wheels, and expect.tree makes the artifact an archive",
		}},
		"of a wheel in a variant": {with("{tree: tool.txz}", "    expect: {glibc: \"2.36\"}\n"), []string{
			"expect.glibc is for wheels",
		}},
		"no archive": {with("{tree: tool.zip}", ""), []string{`"tool.zip" is not the name of an archive: it must end in one of .tar, .tar.gz, `}},
		"a path":     {with("{tree: ../tool.tar}", ""), []string{`"../tool.tar" is not the name of an archive`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := recipe.Parse("recipes/tool.yaml", []byte(c.text), gate.Promises())
			got := messages(err)
			check.That(t, slices.EqualFunc(got, c.want, strings.Contains), "%v", cmp.Diff(c.want, got))
		})
	}
}
