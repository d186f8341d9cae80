package actionstest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// scope is what an expression can see: contexts by their names, and whether what
// went before succeeded.
type scope struct {
	contexts map[string]any
	ok       bool
}

// text evaluates a text that may hold expressions in ${{ }}.
func (s scope) text(template string) (string, error) {
	var out strings.Builder
	for rest := template; ; {
		before, after, found := strings.Cut(rest, "${{")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		expression, behind, closed := strings.Cut(after, "}}")
		if !closed {
			return "", fmt.Errorf("%q: an expression does not end", template)
		}
		value, err := s.evaluate(expression)
		if err != nil {
			return "", err
		}
		said, err := toText(value)
		if err != nil {
			return "", fmt.Errorf("%q: %w", template, err)
		}
		out.WriteString(said)
		rest = behind
	}
}

// texts evaluates every value of a map.
func (s scope) texts(templates map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for name, template := range templates {
		value, err := s.text(template)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = value
	}
	return out, nil
}

var statusCall = regexp.MustCompile(`\b(always|cancelled|success|failure)\(`)

// holds evaluates an if: without a function that asks for a state it holds only
// where all before succeeded.
func (s scope) holds(condition string) (bool, error) {
	if condition == "" {
		return s.ok, nil
	}
	value, err := s.value(condition)
	if err != nil {
		return false, err
	}
	return truth(value) && (s.ok || statusCall.MatchString(condition)), nil
}

// value evaluates a text that is one expression in ${{ }}.
func (s scope) value(template string) (any, error) {
	inner, begins := strings.CutPrefix(strings.TrimSpace(template), "${{")
	inner, ends := strings.CutSuffix(inner, "}}")
	if !begins || !ends || strings.Contains(inner, "${{") {
		return nil, fmt.Errorf("%q is not one expression in ${{ }}", template)
	}
	return s.evaluate(inner)
}

var token = regexp.MustCompile(`^\s*('(?:[^']|'')*'|[A-Za-z_][A-Za-z0-9_-]*|[0-9]+|==|!=|&&|\|\||[!().,\[\]])`)

// evaluate evaluates one expression.
func (s scope) evaluate(expression string) (any, error) {
	p := &parser{scope: s}
	for rest := expression; strings.TrimSpace(rest) != ""; {
		m := token.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("%q: %q is no form that is known here", expression, rest)
		}
		p.tokens, rest = append(p.tokens, m[1]), rest[len(m[0]):]
	}
	value, err := p.either()
	if err == nil && len(p.tokens) > 0 {
		err = fmt.Errorf("%q is left over", strings.Join(p.tokens, " "))
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", strings.TrimSpace(expression), err)
	}
	return value, nil
}

// parser evaluates while it reads. Both sides of && and || are always evaluated,
// so that a fault in either is seen.
type parser struct {
	scope
	tokens []string
}

func (p *parser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *parser) next() string {
	t := p.peek()
	if t != "" {
		p.tokens = p.tokens[1:]
	}
	return t
}

func (p *parser) demand(want string) error {
	if got := p.next(); got != want {
		return fmt.Errorf("%q instead of %q", got, want)
	}
	return nil
}

func (p *parser) either() (any, error) {
	left, err := p.both()
	for err == nil && p.peek() == "||" {
		p.next()
		var right any
		if right, err = p.both(); !truth(left) {
			left = right
		}
	}
	return left, err
}

func (p *parser) both() (any, error) {
	left, err := p.comparison()
	for err == nil && p.peek() == "&&" {
		p.next()
		var right any
		if right, err = p.comparison(); truth(left) {
			left = right
		}
	}
	return left, err
}

func (p *parser) comparison() (any, error) {
	left, err := p.negation()
	if op := p.peek(); err == nil && (op == "==" || op == "!=") {
		p.next()
		right, err := p.negation()
		if err != nil {
			return nil, err
		}
		same, err := equal(left, right)
		return same == (op == "=="), err
	}
	return left, err
}

func (p *parser) negation() (any, error) {
	if p.peek() != "!" {
		return p.access()
	}
	p.next()
	value, err := p.negation()
	return !truth(value), err
}

// access reads a value and what is taken out of it: .name and [0].
func (p *parser) access() (any, error) {
	path := []string{p.peek()}
	value, err := p.primary()
	for err == nil {
		switch p.peek() {
		case ".":
			p.next()
			path = append(path, p.next())
			value, err = member(value, path)
		case "[":
			p.next()
			i, fault := strconv.Atoi(p.next())
			if fault != nil {
				return nil, fmt.Errorf("only numbers are known in [ ]: %w", fault)
			}
			list, _ := value.([]any)
			if value = nil; i < len(list) {
				value = list[i]
			}
			err = p.demand("]")
		default:
			return value, nil
		}
	}
	return nil, err
}

// member takes the last name of a path out of an object. GitHub says nothing of a
// name that is not there; here that is a fault, but for what events may lack.
func member(value any, path []string) (any, error) {
	object, ok := value.(map[string]any)
	found, has := object[path[len(path)-1]]
	if name := strings.Join(path, "."); (!ok || !has) && !strings.HasPrefix(name, "github.event.") {
		return nil, fmt.Errorf("there is no %s", name)
	}
	return found, nil
}

func (p *parser) primary() (any, error) {
	switch t := p.next(); {
	case t == "(":
		value, err := p.either()
		if err != nil {
			return nil, err
		}
		return value, p.demand(")")
	case strings.HasPrefix(t, "'"):
		return strings.ReplaceAll(t[1:len(t)-1], "''", "'"), nil
	case p.peek() == "(":
		return p.call(t)
	default:
		context, known := p.contexts[t]
		if !known {
			return nil, fmt.Errorf("%q is not known here", t)
		}
		return context, nil
	}
}

// call evaluates a function.
func (p *parser) call(name string) (any, error) {
	var arguments []any
	for p.next(); p.peek() != ")"; {
		value, err := p.either()
		if err != nil {
			return nil, err
		}
		if arguments = append(arguments, value); p.peek() == "," {
			p.next()
		} else if p.peek() != ")" {
			return nil, fmt.Errorf("%q behind an argument of %s", p.peek(), name)
		}
	}
	p.next()
	switch {
	case name == "always" && len(arguments) == 0:
		return true, nil
	case name == "cancelled" && len(arguments) == 0:
		return false, nil
	case name == "success" && len(arguments) == 0:
		return p.ok, nil
	case name == "failure" && len(arguments) == 0:
		return !p.ok, nil
	case name == "fromJSON" && len(arguments) == 1:
		text, _ := arguments[0].(string)
		var value any
		err := json.Unmarshal([]byte(text), &value)
		return value, err
	}
	return nil, fmt.Errorf("the function %s with %d arguments is not known here", name, len(arguments))
}

// truth is what a value counts as in a condition.
func truth(value any) bool { return value != nil && value != false && value != "" && value != 0.0 }

// equal compares as GitHub does, of the kinds that are compared here: texts
// whatever their case, and nothing with a text.
func equal(a, b any) (bool, error) {
	x, isText := a.(string)
	y, isTextToo := b.(string)
	switch {
	case isText && isTextToo:
		return strings.EqualFold(x, y), nil
	case a == nil && isTextToo:
		return y == "", nil
	case b == nil && isText:
		return x == "", nil
	}
	return false, fmt.Errorf("comparing %T with %T is not known here", a, b)
}

func toText(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	return "", fmt.Errorf("a text of %T is not known here", value)
}
