package recipe_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestHolds(t *testing.T) {
	axes := map[string]string{"rocm": "6.1.3", "python": "3.14t", "arch": "gfx90a"}
	for name, c := range map[string]struct {
		condition recipe.Condition
		holds     bool
	}{
		"nothing":          {nil, true},
		"one":              {recipe.Condition{"rocm": "6.1"}, true},
		"all hold":         {recipe.Condition{"rocm": ">=6,<7", "arch": "gfx90a", "python": "3.14t"}, true},
		"one axis refuses": {recipe.Condition{"rocm": "6.1", "arch": "!=gfx90a"}, false},
		"both axes refuse": {recipe.Condition{"rocm": "6.2", "arch": "gfx942"}, false},
		"an unknown axis":  {recipe.Condition{"cuda": ">=12"}, false},
		"no constraint":    {recipe.Condition{"rocm": ">=x"}, false},
	} {
		check.That(t, c.condition.Holds(axes) == c.holds, "%s: got %v", name, !c.holds)
	}
}

// filled returns settings with every field set to a value that begins with prefix. It
// uses reflection, so it covers new fields.
func filled(prefix string) recipe.Settings {
	var s recipe.Settings
	var fill func(v reflect.Value, name string)
	fill = func(v reflect.Value, name string) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i), name+"."+v.Type().Field(i).Name)
			}
		case reflect.String:
			v.SetString(name)
		case reflect.Int64:
			v.SetInt(int64(len(name)))
		case reflect.Int:
			v.SetInt(int64(len(name)))
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), name)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), name)
		case reflect.Map:
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf(name))
		default:
			panic(fmt.Sprintf("%s is a %s", name, v.Kind()))
		}
	}
	fill(reflect.ValueOf(&s).Elem(), prefix)
	return s
}

func variant(s recipe.Settings, when recipe.Condition) recipe.Variant {
	return recipe.Variant{When: when, Settings: s}
}

// For must keep every field, whether the recipe or a variant states it.
func TestForKeepsEveryField(t *testing.T) {
	for name, r := range map[string]*recipe.Recipe{
		"of the recipe":                        {Settings: filled("a")},
		"of a variant":                         {Variants: []recipe.Variant{variant(filled("a"), recipe.Condition{"x": "on"})}},
		"of the first of variants":             {Variants: []recipe.Variant{variant(filled("a"), recipe.Condition{"x": "on"}), variant(recipe.Settings{}, recipe.Condition{"x": "on"})}},
		"not of a variant that does not apply": {Settings: filled("a"), Variants: []recipe.Variant{variant(filled("b"), recipe.Condition{"x": "off"})}},
	} {
		got, err := r.For(map[string]string{"x": "on"})
		diff := cmp.Diff(filled("a"), got, cmpopts.EquateEmpty())
		check.That(t, diff == "" && err == nil, "%s: %v (-want +got):\n%s", name, err, diff)
	}
}

func TestForAddsUp(t *testing.T) {
	r := parse(t, strings.Replace(good, `    env: {B: "2"}`, `    env: {A: "{{rocm-path}}", B: "2"}
    image: old
    requires: {build: [cmake]}
    expect: {elf-needed: {needed: [b]}, built-flags: {x: "true"}}
  - when: {version: "2.9", python: "3.12"}
    image: old
    requires: {build: [ninja], run: [numpy]}
    expect: {elf-needed: {needed: [a]}}
  - when: {version: "2.10"}
    image: new`, 1))
	for version, want := range map[string]recipe.Settings{
		"2.9": {
			From: recipe.Origin{Kind: recipe.Sdist}, Image: "old", Env: map[string]string{"A": "{{rocm-path}}", "B": "2"},
			Requires: recipe.Requirements{Build: []string{"cmake", "ninja"}, Run: []string{"numpy"}}, // in the order of the file
			Expect: recipe.Expect{
				Launcher: "mpi",
				Gates:    recipe.GateSettings{"elf-needed": map[string]any{"needed": []any{"b", "a"}}, "built-flags": map[string]any{"x": "true"}},
			},
		},
		"2.10": {From: recipe.Origin{Kind: recipe.Sdist}, Image: "new", Env: map[string]string{"A": "{{rocm-path}}"}, Expect: recipe.Expect{Launcher: "mpi"}},
	} {
		got, err := r.For(map[string]string{"version": version, "python": "3.12"})
		diff := cmp.Diff(want, got, cmpopts.EquateEmpty())
		check.That(t, diff == "" && err == nil, "%s: %v (-want +got):\n%s", version, err, diff)
	}
}

func TestForRefusesVariantsThatDisagree(t *testing.T) {
	const advisory = "{id: CVE-2024-10190, about: a, source: b, mended-by: c, action: d}"
	for first, second := range map[string]string{
		"image: a, runtime: b":                 "image: b, runtime: a",
		"runtime: a":                           "runtime: b",
		`env: {X: "1"}`:                        `env: {X: ""}`,
		"expect: {launcher: mpi}":              "expect: {launcher: gloo}",
		"advisories: [" + advisory + "]":       "advisories: [" + strings.Replace(advisory, "d}", "e}", 1) + "]",
		`expect: {built-flags: {nccl: "2.1"}}`: `expect: {built-flags: {nccl: "2.2"}}`,
	} {
		text := strings.Replace(good, "expect: {launcher: mpi}\n", "", 1) + // line 23
			"  - {when: {python: \"3.12\"}, " + first + "}\n  - {when: {version: \"2.10\"}, " + second + "}\n"
		r := parse(t, text)
		_, err := r.For(map[string]string{"version": "2.9", "python": "3.12"})
		check.That(t, err == nil, "%s: %v", first, err)
		name := map[string]string{"advisories": "advisories[CVE-2024-10190].action", "image": "image", "runtime": "runtime", "env": "env.X", "expect: {launcher": "expect.launcher", "expect: {built": "expect.built-flags.nccl"}
		want := ""
		for prefix, field := range name {
			if strings.HasPrefix(first, prefix) {
				want = "recipes/tool.yaml:27:5: two settings for " + field + " where version is 2.10"
			}
		}
		for range 10 {
			_, err := r.For(map[string]string{"version": "2.10", "python": "3.12"})
			must.Hold(t, diag.CodeOf(err) == diag.Usage && err.Error() == want, "got %v, want %s", err, want)
		}
	}
}

// Facts and settings of gates are one object, and the key of an entry depends on it:
// reading and writing changes no byte.
func TestExpectAsJSON(t *testing.T) {
	for _, text := range []string{
		`{}`,
		`{"packages":["tool"]}`,
		`{"elf-needed":{"needed":["a"]},"size":"1MB..2MB"}`,
		`{"version":"1","waivers":[{"gate":"size","because":"b","issue":"i","until":"2099-01-01"}],"a-later-gate":[1,{"b":true}],"rdma":"linked"}`,
	} {
		var e recipe.Expect
		must.Succeed(t, decode.OpenJSON([]byte(text), &e))
		got := must.Get(json.Marshal(e))(t)
		check.Same(t, "JSON", text, string(got))
	}
	for _, text := range []string{`{"rdma":"linked","rdma":"absent"}`, `{"size":{"a":1,"a":2}}`, `[]`, `{"packages":"tool"}`} {
		var e recipe.Expect
		err := decode.OpenJSON([]byte(text), &e)
		check.That(t, err != nil, "%s was read as %+v", text, e)
	}
}
