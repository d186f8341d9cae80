package builder_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"

	"builder/internal/golden"
)

// noun is a word of the field that has one meaning here, and one type.
type noun struct{ word, is, means string }

// glossary is every noun that stands in recipes, flags, JSON and pages.
var glossary = []noun{
	{"Recipe", "recipe.Recipe", "what a human wrote about one distribution"},
	{"Axis", "recipe.Axis", "a named dimension of the matrix"},
	{"Cell", "matrix.Cell", "a point of the matrix: every axis has exactly one value"},
	{"Patch", "patch.Patch", "edits with a condition, a reason and a link, which prove that they acted"},
	{"Image", "image.Image", "a build base, and the facts that it states"},
	{"Source", "recipe.Source", "where the upstream tree of a recipe comes from"},
	{"Lock", "lock.File", "everything that cells read, by digest, as it is checked in"},
	{"Entry", "lock.Entry", "what one cell reads, by digest; its key names the cell's result"},
	{"Engine", "run.Engine", "builds one entry"},
	{"Step", "pipelines.Step", "a named and timed move of a cell's container"},
	{"Artifact", "artifact.Artifact", "a file that a cell made, its sha256, and the key of the cell"},
	{"Gate", "gate.Gate", "a named question about an artifact"},
	{"Verdict", "verdict.Verdict", "its answer, with evidence and a remedy"},
	{"Bundle", "publish.Bundle", "artifacts with all that was said about them, verified: what can be published"},
	{"Outcome", "run.Outcome", "what became of one entry in a run"},
	{"Profile", "profile.Profile", "the environment in which a stack runs"},
	{"Stack", "stack.Stack", "cells of several recipes that are used together"},
	{"Diagnosis", "diagnose.Diagnosis", "a known failure: how to recognise it, why, what mends it"},
}

// views are types that share the word of a noun because they are that noun at
// another place.
var views = map[string]string{
	"audit.Cell":       "what an audit of patches has to know of it",
	"carry.Cell":       "one whose entry is carried",
	"progress.Cell":    "one that a run shows",
	"report.Cell":      "as run.json has it",
	"runlog.Cell":      "one that has left logs",
	"lock.Image":       "that of an entry, by digest",
	"pipelines.Engine": "Dagger's",
	"native.Engine":    "the process that Dagger's is where there is no Docker",
	"report.Engine":    "as run.json has it",
	"run.Step":         "one that was done, with its time",
	"report.Step":      "as run.json has it",
	"report.Verdict":   "as run.json has it",
	"doctor.Verdict":   "that of a check of a host, which knows more answers",
	"attest.Bundle":    "what lies beside an artifact, before it is judged",
	"stack.Profile":    "the one that a stack runs in, by name and axes",
}

// synonyms are words for a noun that no type is called by.
var synonyms = map[string]string{
	"Combination": "Cell", "Permutation": "Cell",
	"Dimension": "Axis", "Formula": "Recipe", "Blueprint": "Recipe", "Spec": "Recipe",
	"Fix": "Patch", "Tweak": "Patch", "Workaround": "Patch",
	"BaseImage": "Image", "Lockfile": "Lock",
	"Stage": "Step", "Task": "Step", "Worker": "Engine", "Backend": "Engine",
	"Deliverable": "Artifact", "Validator": "Gate", "Validation": "Gate", "Judgement": "Verdict",
	"Problem": "Diagnosis", "Symptom": "Diagnosis", "KnownIssue": "Diagnosis",
}

// types returns the names of all types of the programme, by package.
func types(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, p := range packages(t) {
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), p.ImportPath+"/"+name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.TypeSpec); ok {
					found[s.Name.Name] = append(found[s.Name.Name], file.Name.Name)
				}
				return true
			})
		}
	}
	return found
}

// One word is one thing: each noun is a type, another type of that name is a view of
// it, and no type goes by another word for it.
func TestEachNounIsOneType(t *testing.T) {
	all := types(t)
	for _, n := range glossary {
		of, name, _ := strings.Cut(n.is, ".")
		if !slices.Contains(all[name], of) {
			t.Errorf("%s: there is no type %s", n.word, n.is)
		}
		for _, other := range all[n.word] {
			if full := other + "." + n.word; full != n.is && views[full] == "" {
				t.Errorf("%s is a type too, beside %s: rename it, or say in views what it is of it", full, n.is)
			}
		}
	}
	for full := range views {
		of, name, _ := strings.Cut(full, ".")
		if !slices.Contains(all[name], of) {
			t.Errorf("views: there is no type %s", full)
		}
	}
	for name := range all {
		for synonym, word := range synonyms {
			if strings.EqualFold(name, synonym) {
				t.Errorf("%s.%s: the word is %s", all[name][0], name, word)
			}
		}
	}
}

// The words of docs/architecture.md.
func TestGlossaryOfThePage(t *testing.T) {
	var text strings.Builder
	text.WriteString("\n| word | is | type | at other places |\n|---|---|---|---|\n")
	for _, n := range glossary {
		var others []string
		for _, full := range slices.Sorted(maps.Keys(views)) {
			if strings.HasSuffix(full, "."+n.word) {
				others = append(others, fmt.Sprintf("`%s` %s", full, views[full]))
			}
		}
		fmt.Fprintf(&text, "| %s | %s | `%s` | %s |\n", strings.ToLower(n.word), n.means, n.is, strings.Join(others, "; "))
	}
	golden.CheckSection(t, "docs/architecture.md", "<!-- words -->\n", "<!-- end of words -->", text.String()+"\n")
}
