package recipe_test

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"builder/internal/base/diag"
	"builder/internal/gates/gate"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

const selecting = `
selectors:
  - name: torch
    about: release of torch
    because: torch pins it
    source: https://example.com/torch
    values:
      - {value: "2.11.0", axes: {version: "2.9", cuda: ">=13"}}
      - {value: "2.9.1", axes: {version: "2.8", cuda: "<13"}}
`

// selected is a recipe with two axes, without its selectors.
const selected = `name: tool
summary: A tool
homepage: https://mirror.example/tool
id: "tool-{{version}}-{{cuda}}"
axes:
  - {name: version, about: release, values: ["2.9", "2.8"]}
  - {name: cuda, about: CUDA release, values: ["12.4", "13.0", "13.1"]}
from: {kind: sdist}
source: {project: tool, version: "{{version}}", released: {"2.9": "2025-01-02", "2.8": "2024-01-02"}}
build: make
`

// withSelector returns the recipe with the selectors in text.
func withSelector(text string) (*recipe.Recipe, error) {
	all, err := recipe.Load(fstest.MapFS{"tool.yaml": {Data: []byte(selected + text)}}, "recipes", nil)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// A selector gives each axis without a flag its first allowed value, and leaves those
// of the flag that it allows.
func TestSelector(t *testing.T) {
	r := must.Get(withSelector(selecting))(t)
	s := r.Selectors[0]
	for _, c := range []struct {
		text   string
		filter map[string]string
		want   map[string]string
		says   string
	}{
		{"2.11", nil, map[string]string{"version": "2.9", "cuda": "13.0"}, ""},
		{"latest", nil, map[string]string{"version": "2.9", "cuda": "13.0"}, ""},
		{"2.9.1", nil, map[string]string{"version": "2.8", "cuda": "12.4"}, ""},
		{"2.11.0", map[string]string{"cuda": "13.1"}, map[string]string{"version": "2.9", "cuda": "13.1"}, ""},
		{"2.11.0", map[string]string{"cuda": "all", "version": "all"}, map[string]string{"version": "2.9", "cuda": "13.0,13.1"}, ""},
		{"2.11.0", map[string]string{"cuda": "12.4"}, nil, "--torch 2.11.0 needs cuda >=13, and --cuda is 12.4"},
		{"2.11.0", map[string]string{"version": "2.8"}, nil, "--torch 2.11.0 needs version 2.9, and --version is 2.8"},
		{"2.12", nil, nil, `"2.12" is not a known value`},
		{"all", nil, nil, `"all" names 2 releases`},
	} {
		v, err := s.Choose(c.text)
		var got map[string]string
		if err == nil {
			got, err = s.Narrow(v, r.Axes, c.filter)
		}
		switch {
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || diag.All(err)[0].Hint == ""):
			t.Errorf("%s %v: %v", c.text, c.filter, err)
		case c.says == "" && (err != nil || !maps.Equal(got, c.want)):
			t.Errorf("%s %v: %v, %v", c.text, c.filter, got, err)
		}
	}
}

func TestSelectorsAreChecked(t *testing.T) {
	for name, c := range map[string]struct{ was, is, says string }{
		"no value fits":       {`version: "2.8"`, `version: "3.0"`, "no value of the axis version is 3.0"},
		"an unknown axis":     {`version: "2.8"`, `release: "2.8"`, `unknown axis "release"`},
		"a bad constraint":    {`version: "2.8"`, `version: ">>"`, "selectors[0]"},
		"the name of an axis": {"name: torch", "name: cuda", "the recipe has two flags --cuda"},
		"a value twice":       {`"2.9.1"`, `"2.11.0"`, `value "2.11.0" is all, or occurs twice`},
		"no reason":           {"because: torch pins it", `because: ""`, "selectors.because is missing"},
	} {
		_, err := withSelector(strings.Replace(selecting, c.was, c.is, 1))
		check.Fails(t, err, strings.TrimPrefix(c.says, "selectors[0]"), name)
	}
}

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
