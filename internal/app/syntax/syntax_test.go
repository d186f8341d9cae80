package syntax_test

import (
	"strings"
	"testing"

	"builder/internal/app/syntax"
)

var recipes = []syntax.Verb{
	{Name: "a", Recipe: true, Flags: []syntax.Flag{{Names: []string{"site"}}, {Names: []string{"jobs", "j"}, Value: "N"}, {Names: []string{"rocm"}, Axis: true}}},
	{Name: "b", Recipe: true, Flags: []syntax.Flag{{Names: []string{"jobs", "j"}, Value: "N"}, {Names: []string{"cuda"}, Axis: true}}},
}

var tool = syntax.Verb{Name: "builder", Verbs: []syntax.Verb{
	{Name: "run", Flags: []syntax.Flag{{Names: []string{"site"}}}, Verbs: recipes},
	{Name: "store", Verbs: []syntax.Verb{{Name: "gc"}}},
}}

func TestFind(t *testing.T) {
	for path, want := range map[string]bool{"": true, "run": true, "run a": true, "store gc": true, "gc": false, "store run": false} {
		words := strings.Fields(path)
		v, ok := tool.Find(words...)
		if ok != want || ok && path != "" && v.Name != words[len(words)-1] {
			t.Errorf("%q: got %q, %v", path, v.Name, ok)
		}
	}
}

func TestOptionsAreThoseOfTheRecipesToo(t *testing.T) {
	run, _ := tool.Find("run")
	var names []string
	for _, f := range run.Options() {
		names = append(names, f.Spelling())
	}
	if got := strings.Join(names, "; "); got != "--site; --jobs, -j N" {
		t.Errorf("got %s", got)
	}
	if f, ok := run.Verbs[0].Flag("j"); !ok || f.Names[0] != "jobs" {
		t.Errorf("-j is %+v, %v", f, ok)
	}
}

func TestWalkLeavesRecipesOut(t *testing.T) {
	var seen []string
	tool.Walk(func(words []string, _ syntax.Verb) { seen = append(seen, strings.Join(words, " ")) })
	if got := strings.Join(seen, ", "); got != "builder, builder run, builder store, builder store gc" {
		t.Errorf("got %s", got)
	}
}
