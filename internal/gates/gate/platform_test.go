package gate

import (
	"errors"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// A build against the framework of another platform fails before it compiles anything.
func TestAskFramework(t *testing.T) {
	rocm := recipe.Expect{Import: []string{"horovod.tensorflow"}, Frameworks: []string{"TensorFlow"}, Gates: recipe.GateSettings{"built-flags": map[string]string{"rocm": "true", "cuda": "false"}}}
	waived := rocm
	waived.Waivers = []recipe.Waiver{{Gate: "platform"}}
	const cuda = `{"platforms": ["cuda"], "loaded": {"rocm": [], "cuda": []}, "version": "2.13.0", "built": ""}`
	built := `"built": "2.13.0.570"`
	for name, c := range map[string]struct {
		expect recipe.Expect
		output string
		err    error
		says   []string // nothing if the build goes on
	}{
		"the right framework": {expect: rocm, output: "2026-11-23 a warning\n" + strings.Replace(frameworkROCm, built, `"built": ""`, 1)},
		"a framework of the other vendor": {
			expect: rocm, output: cuda,
			says: []string{"nothing was compiled", "tensorflow", "the framework 2.13.0 reports platform cuda, expected rocm"},
		},
		"a framework without an answer":       {expect: rocm, output: "hello\n", says: []string{"tensorflow reports no platform: hello"}},
		"a framework that cannot be imported": {expect: rocm, err: diag.Errorf(diag.Build, "exit 1"), says: []string{"asking tensorflow for its platform: exit 1"}},
		"a waiver of the gate":                {expect: waived, err: errors.New("asked")},
		"no promised platform":                {expect: recipe.Expect{Import: []string{"ray"}}, err: errors.New("asked")},
	} {
		t.Run(name, func(t *testing.T) {
			err := AskFramework(c.expect, func(args ...string) (string, error) {
				check.Same(t, "asked is", "tensorflow", args[len(args)-1])
				return c.output, c.err
			})
			if len(c.says) == 0 {
				check.That(t, err == nil, "%v", err)
				return
			}
			must.Hold(t, diag.CodeOf(err) == diag.Build, "%v", err)
			for _, text := range c.says {
				check.That(t, strings.Contains(err.Error(), text), "%v\nlacks %q", err, text)
			}
		})
	}
}
