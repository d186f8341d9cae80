package version

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	goversion "github.com/hashicorp/go-version"
)

// A Constraint is a condition on a version or a word.
type Constraint struct{ terms []term }

// term is one comparison. word is set if the operand is not a version.
type term struct {
	op      string
	version Version
	word    string
	native  goversion.Constraints // of ~>, for which go-version computes the bounds
}

var operator = regexp.MustCompile(`^(>=|<=|!=|==|~>|>|<|=)?\s*(\S.*)$`)

// ParseConstraint parses a comma-separated list of comparisons, all of which must hold:
// >=, >, <=, <, =, !=, ~>, and a bare version or word. A bare version allows itself and
// any further numbers: 6.1 allows 6.1.3 but not 6.10.
func ParseConstraint(text string) (Constraint, error) { return constraints.of(text) }

var constraints = memo[Constraint]{parse: parseConstraint}

func parseConstraint(text string) (c Constraint, _ error) {
	for part := range strings.SplitSeq(text, ",") {
		t, err := parseTerm(strings.TrimSpace(part))
		if err != nil {
			return Constraint{}, err
		}
		c.terms = append(c.terms, t)
	}
	return c, nil
}

func parseTerm(text string) (term, error) {
	m := operator.FindStringSubmatch(text)
	if m == nil {
		return term{}, fmt.Errorf("%q is not a constraint such as >=6.0,<6.3", clip(text))
	}
	t := term{op: m[1]}
	v, err := Parse(m[2])
	if err != nil {
		if !word.MatchString(m[2]) || (t.op != "" && t.op != "=" && t.op != "!=" && t.op != "==") {
			return term{}, fmt.Errorf("%q is not a constraint: %w", clip(text), err)
		}
		t.word = m[2]
		return t, nil
	}
	t.version = v
	if t.op == "~>" {
		if t.native, err = goversion.NewConstraint("~> " + v.core.Original()); err != nil {
			return term{}, fmt.Errorf("%q is not a constraint: %w", clip(text), err)
		}
	}
	return t, nil
}

var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+:-]*$`)

// Allows reports whether v satisfies every comparison. A pre-release satisfies only a
// comparison with a pre-release, or !=. The zero Version satisfies no constraint, and
// the zero Constraint allows no version.
func (c Constraint) Allows(v Version) bool {
	return v.core != nil && c.every(func(t term) bool { return t.allows(v) })
}

// AllowsText is like Allows for a value that may be a word, such as gfx90a. A word
// satisfies a bare word or = if both are equal, and != if they are not. It satisfies no
// other comparison.
func (c Constraint) AllowsText(value string) bool {
	if v, err := Parse(value); err == nil {
		return c.Allows(v)
	}
	return value != "" && c.every(func(t term) bool { return t.allowsWord(value) })
}

// Allows reports whether a constraint allows a value, as [Constraint.AllowsText] does. A
// text that is no constraint allows nothing.
func Allows(constraint, value string) bool {
	c, err := ParseConstraint(constraint)
	return err == nil && c.AllowsText(value)
}

func (c Constraint) every(holds func(term) bool) bool {
	return len(c.terms) > 0 && !slices.ContainsFunc(c.terms, func(t term) bool { return !holds(t) })
}

func (t term) allowsWord(value string) bool {
	switch t.op {
	case "", "=", "==":
		return t.word == value
	case "!=":
		return t.word != value
	}
	return false
}

func (t term) allows(v Version) bool {
	if t.word != "" {
		return t.op == "!="
	}
	if t.op == "" {
		return v.hasPrefix(t.version)
	}
	order := t.compare(v)
	if t.op == "!=" {
		return order != 0
	}
	if v.IsPrerelease() && !t.version.IsPrerelease() {
		return false
	}
	switch t.op {
	case ">=":
		return order >= 0
	case ">":
		return order > 0
	case "<=":
		return order <= 0
	case "<":
		return order < 0
	case "~>":
		return order >= 0 && t.native.Check(v.core)
	}
	return order == 0 // = and ==
}

// compare compares v with the operand. It ignores a revision or local part of v if the
// operand has none.
func (t term) compare(v Version) int {
	if t.version.revision == 0 {
		v.revision = 0
	}
	if t.version.local == "" {
		v.local = ""
	}
	return Compare(v, t.version)
}
