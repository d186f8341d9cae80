package diagnose

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestRequired(t *testing.T) {
	for expression, want := range map[string][]string{
		`abc`:                  {"abc"},
		`a\.b`:                 {"a.b"},
		`(abc)+`:               {"abc"},
		`(abc){2,}`:            {"abc"},
		`x.*longer\d+mid`:      {"longer"},
		`foo|barbaz`:           {"foo", "barbaz"},
		`(lib(one|three)\.so)`: {"lib"},
		`(?:error|warning): x`: {"error", "warning"},
		`foo|.*`:               nil,
		`(abc)?`:               nil,
		`(abc)*d`:              {"d"},
		`(abc){0,3}`:           nil,
		`(?i)abc`:              nil,
		`\d+`:                  nil,
		``:                     nil,
	} {
		p, err := compile(expression)
		check.That(t, err == nil && slices.Equal(p.literals, want), "%s: got %q, %v, want %q", expression, p.literals, err, want)
	}
	_, err := compile("(")
	check.That(t, err != nil, "half an expression compiles")
}

// The finder finds exactly the texts contained in the line, even if they overlap.
func TestFinder(t *testing.T) {
	word := rapid.StringMatching(`[ab]{4,6}`)
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(word, 1, 8).Draw(t, "words")
		texts := map[int][]string{}
		for i, w := range words {
			texts[i%3] = append(texts[i%3], w)
		}
		line := rapid.StringMatching(`[abc]{0,40}`).Draw(t, "line")
		got := map[int]bool{}
		newFinder(texts).find([]byte(line), func(id int) { got[id] = true })
		for id, list := range texts {
			want := slices.ContainsFunc(list, func(w string) bool { return strings.Contains(line, w) })
			must.Hold(t, got[id] == want, "%q in %q: got %v, want %v", list, line, got[id], want)
		}
	})
}
