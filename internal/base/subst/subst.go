// Package subst replaces {{name}} in the texts of recipes, images and patches with the
// values of axes and image facts. It has no conditions, functions or defaults, so a
// text is readable without a manual.
package subst

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"builder/internal/base/diag"
)

// A Template is a parsed text, for repeated expansion.
type Template struct {
	text     string
	literals []string // one more than names
	names    []string
}

// Parse parses a text.
func Parse(text string) Template {
	t, last := Template{text: text}, 0
	for at := 0; ; {
		open := strings.Index(text[at:], "{{")
		if open < 0 {
			break
		}
		open += at
		name, rest := cutBrace(text[open+2:])
		if !strings.HasPrefix(rest, "}}") {
			at = open + 1 // {{{a}} holds {{a}}
			continue
		}
		t.literals = append(t.literals, text[last:open])
		t.names = append(t.names, strings.Trim(name, "\t\n\f\r "))
		at = open + 2 + len(name) + 2
		last = at
	}
	t.literals = append(t.literals, text[last:])
	return t
}

// cutBrace splits a text before its first brace.
func cutBrace(text string) (before, from string) {
	i := strings.IndexAny(text, "{}")
	if i < 0 {
		return text, ""
	}
	return text[:i], text[i:]
}

// Constant reports whether no text has a placeholder. Most texts of a recipe have none.
func Constant(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "{{") })
}

// Expand returns the text with every {{name}} replaced by vars[name]. It reports all
// names without a value together.
func (t Template) Expand(vars map[string]string) (string, error) {
	var out strings.Builder
	var errs []error
	for i, name := range t.names {
		value, ok := vars[name]
		if !ok {
			hint := diag.DidYouMean(name, slices.Sorted(maps.Keys(vars)))
			errs = append(errs, diag.Errorf(diag.Usage, "unknown name %q in %q", name, t.text).WithHint("%s", hint))
		}
		out.WriteString(t.literals[i])
		out.WriteString(value)
	}
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	out.WriteString(t.literals[len(t.literals)-1])
	return out.String(), nil
}

// Expand is like [Template.Expand] for a text used once.
func Expand(text string, vars map[string]string) (string, error) {
	if Constant(text) {
		return text, nil
	}
	return Parse(text).Expand(vars)
}

// All expands every text. It returns texts itself if they are constant.
func All(texts []string, vars map[string]string) ([]string, error) {
	if Constant(texts...) {
		return texts, nil
	}
	var out []string
	var errs []error
	for _, text := range texts {
		expanded, err := Expand(text, vars)
		out, errs = append(out, expanded), append(errs, err)
	}
	return out, errors.Join(errs...)
}

// Map expands every value. It returns texts itself if it has values and all are
// constant.
func Map(texts, vars map[string]string) (map[string]string, error) {
	if len(texts) > 0 && Constant(slices.Collect(maps.Values(texts))...) {
		return texts, nil
	}
	out := make(map[string]string, len(texts))
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		expanded, err := Expand(texts[key], vars)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
		out[key] = expanded
	}
	return out, errors.Join(errs...)
}
