package recipe_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"builder/internal/gates/gate"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/must"
	"builder/test/kit/recipetest"
)

func TestSchema(t *testing.T) {
	golden.CheckFile(t, filepath.Join("..", "..", "..", "recipes", "schema.json"), recipetest.RecipeSchema(gate.Promises()))
}

// A comma ends a description in a jsonschema tag. The rest would be lost silently.
func TestNoDescriptionIsCut(t *testing.T) {
	var walk func(reflect.Type)
	walk = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Slice, reflect.Map, reflect.Pointer:
			walk(of.Elem())
		case reflect.Struct:
			for f := range of.Fields() {
				if !f.IsExported() || f.Tag.Get("jsonschema") == "-" { // not part of a recipe file
					continue
				}
				for part := range strings.SplitSeq(f.Tag.Get("jsonschema"), ",") {
					key, _, ok := strings.Cut(part, "=")
					check.That(t, part == "" || (ok && slices.Contains([]string{"description", "enum", "format", "minItems"}, key)),
						"%s.%s: %q is no rule of a schema", of.Name(), f.Name, part)
				}
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[recipe.Recipe]())
	for _, promise := range gate.Promises() {
		if promise.Of != nil {
			walk(reflect.TypeOf(promise.Of))
		}
	}
}

// goodJSON is the good recipe as JSON, which is also YAML.
const goodJSON = `{
  "name": "tool", "summary": "A tool", "homepage": "https://mirror.example/tool", "id": "tool-{{version}}",
  "axes": [{"name": "version", "about": "release", "values": ["2.10", "2.9"]}],
  "compatible": [{"when": {"version": "2.10"}, "needs": {"version": "!=2.9"}, "because": "it says so", "source": "https://mirror.example/why"}],
  "from": {"kind": "sdist"},
  "source": {"project": "tool", "version": "{{version}}", "released": {"2.10": "2025-01-02"}},
  "build": "make", "image": "base", "runtime": "base", "env": {"A": "1"},
  "requires": {"build": ["cmake"], "run": []},
  "expect": {"packages": ["tool"], "device-code": ["gfx90a"], "built-flags": {"mpi": "true"}, "launcher": "mpi"},
  "variants": [{"when": {"version": "2.9"}, "env": {"B": "2"}, "expect": {"elf-needed": {"needed": ["libx.so.1"]}}}]
}`

// Both reject the errors visible to an editor. The loader rejects more, because it
// knows the meaning of a recipe.
func TestSchemaAndLoaderAgree(t *testing.T) {
	read := recipetest.Validator(t, recipetest.RecipeSchema(gate.Promises())) // as in an editor, with the schema alone
	for name, c := range map[string]struct {
		old, new       string
		schema, loader bool
	}{
		"good":                {"", "", true, true},
		"less":                {`"image": "base", "runtime": "base",`, "", true, true},
		"unknown key":         {`"summary"`, `"summry"`, false, false},
		"unknown key in axes": {`"about"`, `"abuot"`, false, false},
		"a number":            {`"2.9"]}]`, `2.9]}]`, false, false},
		"a bool for a list":   {`"run": []`, `"run": false`, false, false},
		"null":                {`"summary": "A tool"`, `"summary": null`, false, false},
		"text for a list":     {`["gfx90a"]`, `"gfx90a"`, false, false},
		"list for text":       {`"build": "make"`, `"build": ["make"]`, false, false},
		"no summary":          {`"summary": "A tool", `, "", false, false},
		"no values":           {`["2.10", "2.9"]`, "[]", false, false},
		"no axes":             {`{"name": "version", "about": "release", "values": ["2.10", "2.9"]}`, "", false, false},
		"no needs":            {`"needs": {"version": "!=2.9"}, `, "", true, false},
		"needs and rows":      {`"needs": {`, `"one-of": [{"version": "2.9"}], "needs": {`, true, false},
		"rows":                {`"needs": {"version": "!=2.9"}`, `"one-of": [{"version": "2.10"}]`, true, true},
		"no dates":            {`, "released": {"2.10": "2025-01-02"}`, "", true, false},
		"unknown kind":        {`"sdist"`, `"svn"`, false, false},
		// Errors that only the loader detects.
		"another name":     {`"name": "tool"`, `"name": "fool"`, true, false},
		"no constraint":    {`"!=2.9"`, `"!= "`, true, false},
		"an empty summary": {`"A tool"`, `""`, true, false},
	} {
		text := []byte(strings.Replace(goodJSON, c.old, c.new, 1))
		check.That(t, (c.old != "") != (string(text) == goodJSON), "%s: nothing was changed", name)
		check.Same(t, fmt.Sprintf("%s: the schema", name), c.schema, read(text) == nil)
		_, err := recipe.Parse("recipes/tool.yaml", text, gate.Promises())
		check.That(t, (err == nil) == c.loader, "%s: the loader says %v", name, err)
	}
}

// The loader rejects every mutated recipe that the schema rejects.
func TestTheLoaderIsAsStrictAsTheSchema(t *testing.T) {
	read := recipetest.Validator(t, recipetest.RecipeSchema(gate.Promises())) // as in an editor, with the schema alone
	rapid.Check(t, func(t *rapid.T) {
		var doc any
		must.Succeed(t, json.Unmarshal([]byte(goodJSON), &doc))
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			doc = change(t, doc)
		}
		text, err := json.Marshal(doc)
		must.Succeed(t, err)
		refused := read(text)
		_, err = recipe.Parse("recipes/tool.yaml", text, gate.Promises())
		if refused != nil && err == nil {
			t.Errorf("%s\nthe loader takes what the schema refuses: %v", text, refused)
		}
	})
}

// change replaces, removes or adds a value anywhere in a document.
func change(t *rapid.T, v any) any {
	if rapid.IntRange(0, 3).Draw(t, "deeper") > 0 {
		switch v := v.(type) {
		case map[string]any:
			if len(v) > 0 {
				key := rapid.SampledFrom(slices.Sorted(maps.Keys(v))).Draw(t, "key")
				v[key] = change(t, v[key])
				return v
			}
		case []any:
			if len(v) > 0 {
				i := rapid.IntRange(0, len(v)-1).Draw(t, "item")
				v[i] = change(t, v[i])
				return v
			}
		}
	}
	if m, ok := v.(map[string]any); ok && rapid.Bool().Draw(t, "a key") {
		key := rapid.SampledFrom(append(slices.Sorted(maps.Keys(m)), "new", "image", "env", "expect", "about")).Draw(t, "of")
		if rapid.Bool().Draw(t, "goes") {
			delete(m, key)
		} else {
			m[key] = foreign(t)
		}
		return m
	}
	return foreign(t)
}

// foreign returns a value that is usually invalid in its place.
func foreign(t *rapid.T) any {
	return rapid.SampledFrom([]any{
		nil, true, 1, 2.9, "x", "2.9", "{{version}}",
		[]any{},
		[]any{"x"},
		[]any{1},
		[]any{map[string]any{}},
		map[string]any{},
		map[string]any{"version": "2.9"},
		map[string]any{"when": map[string]any{}},
	}).Draw(t, "value")
}

// Schema and loader accept all checked-in recipes.
func TestCheckedInRecipesMeetTheSchema(t *testing.T) {
	read := recipetest.Validator(t, recipetest.RecipeSchema(gate.Promises())) // as in an editor, with the schema alone
	all, err := recipe.Load(os.DirFS(filepath.Join("..", "..", "..", "recipes")), "recipes", gate.Promises())
	must.Hold(t, err == nil && len(all) != 0, "%d recipes, %v", len(all), err)
	for _, r := range all {
		text, err := json.Marshal(r)
		must.Succeed(t, err)
		err = read(text)
		check.That(t, err == nil, "%s: %v", r.Name, err)
	}
}
