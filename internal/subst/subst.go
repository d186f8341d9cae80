// Package subst replaces {{name}} in the texts of recipes, images and patches by
// the values of axes and image facts. It knows nothing else: no conditions, no
// functions, no defaults, so that a text can be read without a manual.
package subst

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"builder/internal/diag"
)

var placeholder = regexp.MustCompile(`\{\{\s*([^{}]*?)\s*\}\}`)

// Expand returns text with every {{name}} replaced by vars[name]. All names
// without a value are reported together.
func Expand(text string, vars map[string]string) (string, error) {
	var faults []error
	out := placeholder.ReplaceAllStringFunc(text, func(match string) string {
		name := placeholder.FindStringSubmatch(match)[1]
		value, ok := vars[name]
		if !ok {
			hint := diag.DidYouMean(name, slices.Sorted(maps.Keys(vars)))
			faults = append(faults, diag.Errorf(diag.Usage, "nothing is called %q in %q", name, text).WithHint("%s", hint))
		}
		return value
	})
	if err := errors.Join(faults...); err != nil {
		return "", err
	}
	return out, nil
}

// All expands every text.
func All(texts []string, vars map[string]string) ([]string, error) {
	var out []string
	var faults []error
	for _, text := range texts {
		expanded, err := Expand(text, vars)
		out, faults = append(out, expanded), append(faults, err)
	}
	return out, errors.Join(faults...)
}

// Map expands every value.
func Map(texts, vars map[string]string) (map[string]string, error) {
	out := make(map[string]string, len(texts))
	var faults []error
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		expanded, err := Expand(texts[key], vars)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", key, err))
		}
		out[key] = expanded
	}
	return out, errors.Join(faults...)
}
