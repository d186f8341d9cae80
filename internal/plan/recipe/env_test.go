package recipe_test

import (
	"os"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/gates/gate"
	"builder/internal/plan/recipe"
	"builder/test/kit/must"
)

// An invalid variable name would run as a command in the script of a build step.
func TestNamesOfVariablesAreNames(t *testing.T) {
	text, err := os.ReadFile("../../../recipes/horovod.yaml")
	must.Succeed(t, err)
	for name, line := range map[string]string{
		"a;touch x": `"a;touch x": v`, "1a": "1a: v", "a.b": "a.b: v", "$(x)": `"$(x)": v`, "-S": `"-S": v`, "": `"": v`,
	} {
		bad := string(text)
		at := strings.Index(bad, "\nenv:\n")
		must.Hold(t, at >= 0, "the recipe has no env")
		bad = bad[:at] + "\nenv:\n  " + line + "\n" + bad[at+len("\nenv:\n"):]
		_, err := recipe.Parse("recipes/horovod.yaml", []byte(bad), gate.Promises())
		errs := diag.All(err)
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), "is not the name of a variable") || errs[0].Pos.Line != strings.Count(bad[:at], "\n")+3 || errs[0].Pos.Column == 0 {
			t.Errorf("%q: %v", name, err)
		}
	}
}
