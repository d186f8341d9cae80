package runlog

import (
	"slices"
	"strings"

	"builder/internal/base/diag"
)

// FindByName finds the item identified by a word: by its full name, its prefix, or any part
// of its name.
func FindByName[T any](what, word string, from []T, name func(T) string) (string, error) {
	var names []string
	for _, f := range from {
		names = append(names, name(f))
	}
	for _, matches := range []func(name, word string) bool{
		func(name, word string) bool { return name == word }, strings.HasPrefix, strings.Contains,
	} {
		found := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !matches(name, word) })
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return "", diag.Errorf(diag.Usage, "%q matches %d %ss", word, len(found), what).WithHint("write more of the name: %s", strings.Join(found, ", "))
		}
	}
	if len(names) == 0 {
		return "", diag.Errorf(diag.Usage, "unknown %s %q: the results have none", what, word).
			WithHint("`builder run RECIPE` writes cells below the directory of --out (out)")
	}
	return "", diag.Errorf(diag.Usage, "unknown %s %q", what, word).WithHint("%s", diag.DidYouMean(word, names))
}
