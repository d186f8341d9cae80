package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"builder/images"
	"builder/internal/build/native"
	"builder/internal/plan/image"
	"builder/pipelines"
	"builder/recipes"
	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/must"
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
	must.Succeed(t, json.Unmarshal(s.Properties, &of))
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
		check.That(t, about != "", "the key %s%s of a recipe has no description", below, name)
		need := ""
		if slices.Contains(s.Required, name) {
			need = "yes"
		}
		form := key.Type
		if form == "array" {
			form = "list"
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s | %s |\n", below, name, form, need, tableCell(about))
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
	data := must.Get(recipes.FS.ReadFile("schema.json"))(t)
	var s schema
	must.Succeed(t, json.Unmarshal(data, &s))
	var b strings.Builder
	fmt.Fprintf(&b, "%s# Keys of a recipe\n\nEvery key of `recipes/NAME.yaml`, in the order of the schema. [Recipes](../recipes.md#a-recipe) explains how they work together, and [a worked example](../writing-a-recipe.md) shows them in use. `x[]` is an item of a list. \"yes\" means that the key is required where its parent stands. A variant may hold any key from `vars` on, and needs `when`.\n\n", generated)
	b.WriteString("| key | form | required | says |\n| --- | --- | --- | --- |\n")
	s.rows(t, &b, "")
	return b.String()
}

// referenceImages returns the page of the built-in images.
func referenceImages(t *testing.T) string {
	t.Helper()
	all := must.Get(image.Load(images.FS, "images"))(t)
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
		fmt.Fprintf(&b, "| `%s`: %s | %s | %s |\n", i.Name, tableCell(i.Summary), from, tableCell(strings.Join(facts, ", ")))
	}
	return b.String()
}

const referenceDir = "../../docs/reference"

// TestReference compares docs/reference with the code; -update rewrites it.
func TestReference(t *testing.T) {
	v := tool(t)
	pages := map[string]string{"README.md": referenceIndex(v), "recipe.md": referenceRecipe(t), "images.md": referenceImages(t)}
	for _, below := range v.own() {
		pages["builder-"+below.Name+".md"] = generated + referenceOf("#", below)
	}
	for name, text := range pages {
		golden.CheckFile(t, filepath.Join(referenceDir, name), []byte(text))
	}
	there := must.Get(os.ReadDir(referenceDir))(t)
	for _, e := range there {
		if _, ok := pages[e.Name()]; !ok {
			t.Errorf("%s/%s speaks of nothing that is there: remove it", referenceDir, e.Name())
		}
	}
}

const generated = "<!-- Written by go test ./cmd/builder -run Reference -update from the code. -->\n\n"

// variables lists the variables without a flag, in the order of the reference.
var variables = []struct{ name, about, fallback string }{
	{"BUILDER_HOME", "directory of the tool's own files: store, engine and keys", ""},
	{"BUILDER_ENGINE_PATIENCE", "give up an engine after this TIME without a response, such as 90s", pipelines.Patience.String()},
	{"BUILDER_ENGINE_CACHE", "limit the cache of an engine started by builder to SIZE, such as 40GB, or a share of the disk", engineCacheDefault},
	{native.ImageVariable, "copy the engine from PLACE@sha256:DIGEST and do not compile it; PLACE is a URL or file:PATH", ""},
	{"BUILDER_MIRROR_DEBIAN", "addresses of Debian mirrors, or file:DIR; the first resolves names and needs the index of an archive; the default comes from this host's apt", ""},
	{"BUILDER_MIRROR_DEBIAN_SNAPSHOT", "address of a Debian snapshot archive, for packages missing on the mirrors", ""},
	{"BUILDER_MIRROR_MAVEN", "addresses of Maven repositories, or file:DIR, with the CPythons of images/cpython.yaml; the default comes from Maven's settings on this host", ""},
	{"BUILDER_MIRROR_REGISTRY", "HOST[:PORT][/PATH] to pull images of Docker Hub from; REGISTRY=HOST[:PORT][/PATH] for another registry", ""},
	{"BUILDER_MIRROR_SOURCE", "NAME=PATH or NAME=URL of a source, a Debian package or a Python package to fetch there first, as --set source.NAME for every run; a name may occur for each of several files", ""},
	{"BUILDER_PYTHON_INDEX", "NAME=URL of a Python index for the packages whose requirement ends with from NAME; they come from nowhere else, and nothing else comes from there", ""},
}

// referenceIndex returns the first page: verbs, variables, axes and exit codes.
func referenceIndex(v verb) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s# Reference\n\n%s\n\n", generated, v.Description)
	fmt.Fprintf(&b, "`builder VERB --help` prints the same texts. `builder --version` prints the versions of builder, its engine and Go. `builder config completion SHELL` prints a completion script.\n\n## Verbs\n")
	group := ""
	for _, below := range v.own() {
		if below.Category != group {
			group = below.Category
			fmt.Fprintf(&b, "\n### %s\n\n| verb | does |\n| --- | --- |\n", group)
		}
		fmt.Fprintf(&b, "| [`builder %s`](builder-%s.md) | %s |\n", below.Name, below.Name, tableCell(below.Usage))
	}
	fmt.Fprintf(&b, "\n## Variables\n\nA flag overrides its variable, and a variable overrides the default. The variable of `--step-limit` is `BUILDER_STEP_LIMIT`; the tables of the verbs name all. An empty variable means the default. A list is separated by commas. builder reads no configuration file: a foreign checkout must not decide which programs run, whom you trust, and who signs. These variables have no flag:\n\n| variable | is | default |\n| --- | --- | --- |\n")
	for _, v := range variables {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", v.name, tableCell(v.about), code(v.fallback))
	}
	fmt.Fprintf(&b, "| `UV_PUBLISH_TOKEN`, or `UV_PUBLISH_USERNAME` and `UV_PUBLISH_PASSWORD` | credentials of an upload server, for uv |  |\n")
	fmt.Fprintf(&b, "\n## Axes\n\nAn axis is a flag of every verb with a RECIPE.\n")
	run, _ := v.find([]string{"run"})
	for _, r := range run.names() {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n%s", r.Name, tableCell(r.Usage), axesTable(r))
	}
	fmt.Fprintf(&b, "\n[Exit codes](../exit-codes.md) are the same for every verb.\n")
	return b.String()
}

// referenceOf returns the chapter of a verb and those of its subverbs. level is the prefix
// of its heading.
func referenceOf(level string, v verb) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n\n%s%s.\n\n```text\n%s\n```\n", level, strings.Join(v.words, " "), strings.ToUpper(v.Usage[:1]), v.Usage[1:], usageOf(v))
	if v.Description != "" {
		b.WriteString("\n" + paragraphs(v.Description) + "\n")
	}
	kind, _, _ := strings.Cut(strings.Trim(v.ArgsUsage, "[]"), " ")
	kind = strings.TrimRight(kind, "]")
	var names []string
	for _, r := range v.names() {
		names = append(names, "`"+r.Name+"`")
	}
	if len(names) > 0 {
		axes := "axes"
		if kind == "RECIPE" {
			axes = "[axes](README.md#axes)" // many verbs share them
		}
		fmt.Fprintf(&b, "\n%s is one of %s. Flags and its %s come with it.\n", kind, strings.Join(names, ", "), axes)
	}
	if options := v.options(); len(options) > 0 {
		b.WriteString("\n| flag | does | default | variable |\n| --- | --- | --- | --- |\n")
		for _, f := range options {
			b.WriteString(flagRow(f))
		}
	}
	if kind == "PROFILE" {
		for _, r := range v.names() {
			fmt.Fprintf(&b, "\nAxes of `%s`:\n\n%s", r.Name, axesTable(r))
		}
	}
	if all := examples[v.path()]; len(all) > 0 {
		b.WriteString("\nExamples:\n\n```text\n")
		for i, e := range all {
			if i > 0 {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "# %s\n%s\n", e.does, e.line)
		}
		b.WriteString("```\n")
	}
	for _, below := range v.own() {
		b.WriteString("\n" + referenceOf(level+"#", below))
	}
	return b.String()
}

// usageOf returns the usage line of a verb.
func usageOf(v verb) string {
	words := v.words
	switch {
	case v.ArgsUsage != "":
		words = append(slices.Clone(words), v.ArgsUsage)
	case len(v.own()) > 0:
		words = append(slices.Clone(words), "COMMAND")
	}
	if len(v.options()) > 0 {
		words = append(slices.Clone(words), "[flags]")
	}
	return strings.Join(words, " ")
}

// paragraphs returns a description with its indented lines as blocks of code.
func paragraphs(text string) string {
	var blocks []string
	for block := range strings.SplitSeq(text, "\n\n") {
		if strings.HasPrefix(block, "   ") {
			block = "```text\n" + strings.TrimPrefix(strings.ReplaceAll(block, "\n   ", "\n"), "   ") + "\n```"
		} else {
			block = inert(block)
		}
		blocks = append(blocks, block)
	}
	return strings.Join(blocks, "\n\n")
}

// flagRow returns the row of a flag in a table of flags.
func flagRow(f cli.DocGenerationFlag) string {
	var names []string
	for _, name := range f.(cli.Flag).Names() {
		names = append(names, strings.TrimSuffix("--", strings.Repeat("-", max(0, 2-len(name))))+name)
	}
	spelling, about := strings.Join(names, ", "), strings.ReplaceAll(f.GetUsage(), "`", "")
	if _, placeholder, ok := strings.Cut(f.GetUsage(), "`"); ok {
		placeholder, _, _ = strings.Cut(placeholder, "`")
		spelling += " " + placeholder
	}
	if repeats(f.(cli.Flag)) && !strings.Contains(about, "repeatable") {
		about += "; repeatable"
	}
	variable := ""
	if len(f.GetEnvVars()) > 0 {
		variable = f.GetEnvVars()[0]
	}
	return fmt.Sprintf("| %s | %s | %s | %s |\n", code(spelling), tableCell(about), code(defaultOf(f)), code(variable))
}

// defaultOf returns the default of a flag. Zero is not shown; the text explains it.
func defaultOf(f cli.DocGenerationFlag) string {
	text := strings.Trim(f.GetDefaultText(), `"`)
	if !f.TakesValue() || text == "0" || text == "0s" {
		return ""
	}
	return text
}

// axesTable returns the table of the axes of a recipe or a profile.
func axesTable(recipe *cli.Command) string {
	var b strings.Builder
	b.WriteString("| axis | is | values, most preferred first |\n| --- | --- | --- |\n")
	for _, f := range recipe.Flags {
		axis, ok := axisOf(f)
		if !ok {
			continue
		}
		about, _, _ := strings.Cut(f.(cli.DocGenerationFlag).GetUsage(), ": `")
		fmt.Fprintf(&b, "| `--%s` | %s | `%s` |\n", f.Names()[0], tableCell(about), strings.Join(axis.known, "` `"))
	}
	return b.String()
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}

func tableCell(text string) string { return strings.ReplaceAll(inert(text), "|", `\|`) }

// inert escapes markup in text. Text between backticks needs no escape.
func inert(text string) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = strings.NewReplacer("<", "&lt;", "*", `\*`, "[", `\[`).Replace(parts[i])
	}
	return strings.Join(parts, "`")
}

// repeats reports whether a flag may occur several times.
func repeats(f cli.Flag) bool {
	if slice, ok := f.(cli.DocGenerationSliceFlag); ok && slice.IsSliceFlag() {
		return true
	}
	_, ok := f.(*cli.GenericFlag)
	return ok
}
