package diagnose

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// minLiteral is the shortest text rare enough in logs to be useful for a search.
const minLiteral = 4

// A pattern is an expression with literals. If there are literals, each match contains
// at least one of them, so a line without any needs no matching.
type pattern struct {
	*regexp.Regexp
	literals []string
}

func compile(expression string) (pattern, error) {
	re, err := regexp.Compile(expression)
	if err != nil {
		return pattern{}, fmt.Errorf("%q is not a regular expression: %w", expression, err)
	}
	tree, err := syntax.Parse(expression, syntax.Perl)
	return pattern{re, required(tree)}, err
}

// required returns texts of which every match contains at least one, or nil if there
// are none.
func required(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return []string{string(re.Rune)}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if r := required(sub); shortest(r) > shortest(best) {
				best = r
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			r := required(sub)
			if r == nil {
				return nil
			}
			all = append(all, r...)
		}
		return all
	}
	return nil
}

// shortest returns the length of the shortest text, or 0 without texts.
func shortest(texts []string) int {
	n := 0
	for i, t := range texts {
		if i == 0 || len(t) < n {
			n = len(t)
		}
	}
	return n
}
