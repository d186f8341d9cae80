package manual_test

import (
	"strings"
	"testing"

	"builder/internal/app/manual"
	"builder/internal/app/syntax"
	"builder/internal/testutil/golden"
)

var run = syntax.Verb{
	Name: "run", Summary: "build cells", Operands: "RECIPE [axes]",
	About: "First paragraph,\nsecond line with `code` and <cell>.\n\n   literal - 'quoted' \\n\n\n   .after a gap\n\n.PP is text here.",
	Flags: []syntax.Flag{{Names: []string{"recipes"}, Value: "DIR", About: "a site", Variable: "BUILDER_RECIPES"}},
	Verbs: []syntax.Verb{{Name: "horovod", Summary: "Horovod", Recipe: true, Flags: []syntax.Flag{
		{Names: []string{"recipes"}, Value: "DIR", About: "a site", Variable: "BUILDER_RECIPES"},
		{Names: []string{"jobs", "j"}, Value: "N", About: "build N at a time", Default: "1"},
		{Names: []string{"env"}, Value: "A|B", About: "set it", Repeats: true},
		{Names: []string{"rocm"}, Value: "VALUE", About: "ROCm release: VALUE of 6.1, 5.7", Axis: true, Takes: syntax.Takes{Words: []string{"6.1", "5.7", "all"}}},
	}}},
	Examples: []syntax.Example{{Line: "builder run horovod --rocm '>=6.0'", Does: "newer ones"}},
	Exits:    []syntax.Exit{{Code: 0, Means: "done"}, {Code: 2, Means: "usage … wrong"}},
}

func TestPage(t *testing.T) {
	page := manual.Page([]string{"builder", "run"}, run, manual.Edition{Version: "1.0", Date: "2026-01-31"})
	golden.Check(t, "run.1", []byte(page))
	if below := manual.Page([]string{"builder"}, syntax.Verb{Name: "builder", Summary: "builds", Verbs: []syntax.Verb{run}}, manual.Edition{}); !strings.Contains(below, `\fBbuilder-run\fP(1)`) {
		t.Errorf("a page does not name those below it:\n%s", below)
	}
}

// TestNoLineIsARequest: no line of a page but those of this package begins with a
// control character of roff, whatever the texts are.
func TestNoLineIsARequest(t *testing.T) {
	nasty := ".so /etc/passwd\n'so x\n\n  .so y\n\n" + strings.Repeat("word ", 13) + ".so z"
	v := syntax.Verb{
		Name: "x", Summary: ".so a", About: nasty,
		Flags:    []syntax.Flag{{Names: []string{"f"}, About: nasty}},
		Examples: []syntax.Example{{Line: ".so b", Does: "'so c"}}, Exits: []syntax.Exit{{Means: ".so d"}},
	}
	for line := range strings.Lines(manual.Page([]string{"x"}, v, manual.Edition{Version: `1 "2`})) {
		if strings.HasPrefix(line, ".so") || strings.HasPrefix(line, "'") {
			t.Errorf("a request: %s", line)
		}
	}
}

func TestReference(t *testing.T) {
	golden.Check(t, "run.md", []byte(manual.Reference([]string{"builder", "run"}, run)))
	golden.Check(t, "axes.md", []byte(manual.Axes(run.Verbs[0])))
	profile := run
	profile.Name, profile.Operands = "profile", "PROFILE [axes]"
	golden.Check(t, "profile.md", []byte(manual.Reference([]string{"builder", "profile"}, profile)))
}
