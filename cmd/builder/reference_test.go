package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"builder/images"
	"builder/internal/app/manual"
	"builder/internal/plan/image"
	"builder/recipes"
)

// schema is the part of a JSON schema that the reference shows. Keys keep the order of
// the file.
type schema struct {
	Type        string          `json:"type"`
	Description string          `json:"description"`
	Enum        []string        `json:"enum"`
	Items       *schema         `json:"items"`
	Required    []string        `json:"required"`
	Properties  json.RawMessage `json:"properties"`
}

// keys returns the names and the schemas of the keys in their order.
func (s schema) keys(t *testing.T) (names []string, of map[string]schema) {
	t.Helper()
	if len(s.Properties) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(s.Properties, &of); err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(s.Properties))
	depth := 0
	for {
		token, err := d.Token()
		if err != nil {
			return names, of
		}
		switch word, isText := token.(string); {
		case token == json.Delim('{') || token == json.Delim('['):
			depth++
		case token == json.Delim('}') || token == json.Delim(']'):
			depth--
		case isText && depth == 1:
			if _, is := of[word]; is && !slices.Contains(names, word) {
				names = append(names, word)
			}
		}
	}
}

// rows adds a row for each key below a path.
func (s schema) rows(t *testing.T, b *strings.Builder, below string) {
	t.Helper()
	names, of := s.keys(t)
	for _, name := range names {
		key, inner := of[name], of[name]
		if key.Items != nil {
			inner = *key.Items
		}
		about := key.Description
		if len(inner.Enum) > 0 {
			about = strings.TrimPrefix(about+": ", ": ") + strings.Join(inner.Enum, ", ")
		}
		if about == "" {
			t.Errorf("the key %s%s of a recipe has no description", below, name)
		}
		need := ""
		if slices.Contains(s.Required, name) {
			need = "yes"
		}
		form := key.Type
		if form == "array" {
			form = "list"
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s | %s |\n", below, name, form, need, manual.Cell(about))
		if below+name == "variants" {
			continue // the same keys again
		}
		if key.Items != nil {
			name += "[]"
		}
		inner.rows(t, b, below+name+".")
	}
}

// referenceRecipe returns the page of all keys of a recipe, from its schema.
func referenceRecipe(t *testing.T) string {
	t.Helper()
	data, err := recipes.FS.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s# Keys of a recipe\n\nEvery key of `recipes/NAME.yaml`, in the order of the schema. [Recipes](../recipes.md#a-recipe) explains how they work together, and [a worked example](../writing-a-recipe.md) shows them in use. `x[]` is an item of a list. \"yes\" means that the key is required where its parent stands. A variant may hold any key from `vars` on, and needs `when`.\n\n", generated)
	b.WriteString("| key | form | required | says |\n| --- | --- | --- | --- |\n")
	s.rows(t, &b, "")
	return b.String()
}

// referenceImages returns the page of the built-in images.
func referenceImages(t *testing.T) string {
	t.Helper()
	all, err := image.Load(images.FS, "images")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s# Built-in images\n\nThe facts of each image are probed in every run. An image with `python3.11-dev` or `python3.13-dev` has the headers of that Python. A recipe names an image of this list in `image` or `runtime`. A name with `{{…}}` in a recipe, such as `rocm-{{rocm}}-ubuntu-22.04`, stands for several. [An image](../writing-an-image.md) shows how to write your own.\n\n| image | made from | facts |\n| --- | --- | --- |\n", generated)
	for _, i := range all {
		from := "`" + i.Reference() + "`"
		if i.Debian != nil {
			var suites []string
			for _, s := range i.Debian.Suites {
				suites = append(suites, s.Name)
			}
			from = "Debian " + strings.Join(suites, ", ") + " with " + strings.Join(i.Debian.Packages, ", ")
		}
		var facts []string
		for _, name := range slices.Sorted(maps.Keys(i.Provides)) {
			facts = append(facts, name+" "+i.Provides[name].Is)
		}
		fmt.Fprintf(&b, "| `%s`: %s | %s | %s |\n", i.Name, manual.Cell(i.Summary), from, manual.Cell(strings.Join(facts, ", ")))
	}
	return b.String()
}
