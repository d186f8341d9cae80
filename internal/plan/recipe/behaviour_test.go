package recipe_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"builder/internal/base/diag"
	"builder/internal/gates/gate"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
)

// asking returns the good recipe with behaviours of its own and of two variants that
// hold in the same cell.
func asking(own, first, second string) string {
	return strings.Replace(good, "expect: {launcher: mpi}\n", "expect: {behaviour: ["+own+"]}\n", 1) +
		"  - {when: {python: \"3.12\"}, expect: {behaviour: [" + first + "]}}\n" +
		"  - {when: {version: \"2.10\"}, expect: {behaviour: [" + second + "]}}\n"
}

// The script is written once, and its expected answer differs between cells.
func TestBehavioursOfOneNameAddUp(t *testing.T) {
	r := parse(t, asking(`{name: x, about: a, run: echo, says: {set: A}}`, `{name: x, says: {gpus: "2"}}`, `{name: x, stock: {set: B}}, {name: y}`))
	s, err := r.For(map[string]string{"version": "2.10", "python": "3.12"})
	want := []recipe.Behaviour{
		{Name: "x", About: "a", Run: "echo", Says: map[string]string{"set": "A", "gpus": "2"}, Stock: map[string]string{"set": "B"}},
		{Name: "y"},
	}
	diff := cmp.Diff(want, s.Expect.Behaviour)
	check.That(t, err == nil && diff == "", "%v (-want +got):\n%s", err, diff)
	check.That(t, s.Expect.KnowsStock(), "nothing is known of upstream's release")
	if s, err = r.For(map[string]string{"version": "2.9", "python": "3.11"}); err != nil || s.Expect.KnowsStock() || len(s.Expect.Behaviour) != 1 {
		t.Errorf("%+v, %v", s.Expect.Behaviour, err)
	}
}

func TestBehavioursThatDisagree(t *testing.T) {
	for second, want := range map[string]string{
		`{name: x, about: b}`:         "expect.behaviour[x].about",
		`{name: x, run: false}`:       "expect.behaviour[x].run",
		`{name: x, says: {set: B}}`:   "expect.behaviour[x].says.set",
		`{name: x, stock: {set: B}}`:  "expect.behaviour[x].stock.set",
		`{name: x, says: {set: A}}`:   "",
		`{name: y, says: {set: B}}`:   "",
		`{name: x, stock: {more: B}}`: "",
	} {
		r := parse(t, asking(`{name: x, about: a, run: echo, says: {set: A}}`, `{name: x, stock: {set: A}}`, strings.Replace(second, "run: false", "run: fails", 1)))
		_, err := r.For(map[string]string{"version": "2.10", "python": "3.12"})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), "two settings for "+want+" where")) {
			t.Errorf("%s: %v", second, err)
		}
	}
}

func TestBehavioursAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		`{name: X y}`:                 `"X y" is not the name of a behaviour`,
		`{about: a}`:                  `"" is not the name of a behaviour`,
		`{name: x}, {name: x}`:        `"x" occurs twice`,
		`{name: x, says: {"": "1"}}`:  `behaviour "x": a key is empty`,
		`{name: x, stock: {"": "1"}}`: `behaviour "x": a key is empty`,
	} {
		for where, whole := range map[string]string{"23": asking(text, `{name: z}`, `{name: z}`), "27": asking(`{name: z}`, text, `{name: z}`)} {
			_, err := recipe.Parse("recipes/tool.yaml", []byte(whole), gate.Promises())
			check.That(t, diag.CodeOf(err) == diag.Usage && strings.Contains(err.Error(), want) && strings.Contains(err.Error(), "recipes/tool.yaml:"+where+":"),
				"%s in line %s: %v", text, where, err)
		}
	}
}

// Missing parts of a behaviour can only be reported for a cell.
func TestFaultOfABehaviour(t *testing.T) {
	whole := recipe.Behaviour{Name: "x", About: "a", Run: "r", Says: map[string]string{"set": "A", "n": "1"}, Stock: map[string]string{"set": "B"}}
	for name, c := range map[string]struct {
		change func(*recipe.Behaviour)
		want   []string
	}{
		"nothing":          {func(*recipe.Behaviour) {}, nil},
		"no stock":         {func(b *recipe.Behaviour) { b.Stock = nil }, nil},
		"everything":       {func(b *recipe.Behaviour) { *b = recipe.Behaviour{Name: "x"} }, []string{"x needs about", "x needs run", "x needs says"}},
		"the same answer":  {func(b *recipe.Behaviour) { b.Stock = map[string]string{"set": "A"} }, []string{"it proves nothing"}},
		"another question": {func(b *recipe.Behaviour) { b.Stock = map[string]string{"other": "B"} }, []string{"it proves nothing"}},
	} {
		b := whole
		c.change(&b)
		err := b.Fault()
		check.That(t, (err == nil) == (len(c.want) == 0), "%s: %v", name, err)
		for _, want := range c.want {
			check.That(t, strings.Contains(err.Error(), want), "%s: %v lacks %q", name, err, want)
		}
	}
}

// The source of a compiled artifact answers no script, unless it is a released wheel.
func TestStockOfACompiledArtifact(t *testing.T) {
	for name, c := range map[string]struct {
		kind       recipe.SourceKind
		extensions []string
		refused    bool
	}{
		"compiled from an sdist": {recipe.Sdist, []string{"a/_c*.so"}, true},
		"compiled from a tree":   {recipe.Git, []string{"a/_c*.so"}, true},
		"a patched wheel":        {recipe.Wheel, []string{"a/_c*.so"}, false},
		"pure Python":            {recipe.Sdist, nil, false},
	} {
		var s recipe.Settings
		s.From.Kind, s.Expect.Extensions = c.kind, c.extensions
		s.Expect.Behaviour = []recipe.Behaviour{{Name: "plain", Says: map[string]string{"a": "1"}}}
		err := s.StockFault()
		check.That(t, err == nil, "%s, without stock: %v", name, err)
		s.Expect.Behaviour[0].Stock = map[string]string{"a": "2"}
		if err := s.StockFault(); (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "expect.behaviour plain: stock needs a source of kind wheel") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
