package diagnose

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// minLiteral is the length from which a text is rare enough in a log to be worth
// a look.
const minLiteral = 4

// A pattern is an expression, and texts of which each of its matches contains at
// least one, where there are such: a line without them need not be matched.
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

// required returns texts of which every match contains at least one, or nil.
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

// shortest returns the length of the shortest text, 0 where there is none.
func shortest(texts []string) int {
	n := 0
	for i, t := range texts {
		if i == 0 || len(t) < n {
			n = len(t)
		}
	}
	return n
}
