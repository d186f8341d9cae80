package recipe_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"builder/internal/gates/gate"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestNeedsAreChecked(t *testing.T) {
	const one = "{id: CVE-2024-10190, about: a, source: b, mended-by: c, action: d}"
	for text, says := range map[string]string{
		"inputs: [{axes: {version: \"1\"}}]":                                             "inputs.recipe is missing",
		"inputs: [{recipe: tool}]":                                                       `an input must name another recipe, not "tool"`,
		"profile: [{name: a b, value: x, because: y, source: z}]":                        `"a b" is not the name of a variable`,
		"profile: [{name: A, value: \"$(id)\", because: y, source: z}]":                  `A: the value "$(id)" needs quotes, which are not supported`,
		"variants: [{when: {version: \"2.9\"}, expect: {size: 20MB}}]":                   `expect.size: "20MB" is not a range such as 50KB..500KB or 11MB..21MB`,
		"variants: [{when: {version: \"2.9\"}, expect: {size: 20MB..11MB}}]":             `expect.size: "20MB..11MB" is not a range such as 50KB..500KB or 11MB..21MB`,
		"variants: [{when: {version: \"2.9\"}, expect: {size: 1.5MB..2MB}}]":             `is not a range such as 50KB..500KB or 11MB..21MB`,
		"variants: [{when: {version: \"2.9\"}, expect: {rendezvous: open}}]":             `expect.rendezvous: "open" is not sealed`,
		"advisories: [{id: GHSA-1, about: a, source: b, mended-by: c, action: d}]":       `id "GHSA-1" is not an id such as CVE-2024-10190`,
		"advisories: [{id: CVE-2024-10190, about: a, source: b, mended-by: c}]":          "advisories.action is missing",
		"advisories: [{id: CVE-2024-10190, about: a, source: b, action: d}]":             "advisories.mended-by is missing",
		"advisories: [{id: CVE-2024-10190, severity: 9}]":                                `unknown key "severity"`,
		"variants: [{when: {version: \"2.9\"}, advisories: [" + one + ", " + one + "]}]": `"CVE-2024-10190" occurs twice`,
		"profile: [{name: A, value: x}]":                                                 "profile.because is missing",
		"variants: [{when: {version: \"2.9\"}, profile: [{name: A, value: \"\"}]}]":      `the value "" needs quotes, which are not supported`,
	} {
		before, _, ok := strings.Cut(good, "variants:")
		must.Hold(t, ok, "the example has no variants any more")
		site := fstest.MapFS{"tool.yaml": {Data: []byte(before + text + "\n")}}
		_, err := recipe.Load(site, "recipes", gate.Promises())
		check.Fails(t, err, says, text)
	}
}
