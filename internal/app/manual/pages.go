package manual

import (
	"os"
	"path/filepath"

	"builder/internal/app/syntax"
	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
)

// Find follows words, and suggests the nearest where one is no verb.
func Find(v syntax.Verb, words []string) (syntax.Verb, error) {
	for _, word := range words {
		below, ok := v.Find(word)
		if !ok {
			var known []string
			for _, other := range v.Verbs {
				known = append(known, other.Name)
			}
			return v, diag.Errorf(diag.Usage, "%s has no command %q", v.Name, word).WithHint("%s", diag.DidYouMean(word, known))
		}
		v = below
	}
	return v, nil
}

// WritePages writes a page for every verb.
func WritePages(tool syntax.Verb, dir string, e Edition) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return diag.Errorf(diag.Usage, "--out: %w", err)
	}
	var err error
	tool.Walk(func(words []string, v syntax.Verb) {
		if err == nil {
			err = atomicfile.Write(filepath.Join(dir, PageName(words)+".1"), []byte(Page(words, v, e)))
		}
	})
	return err
}
