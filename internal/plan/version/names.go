package version

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/files/elf"
)

var (
	spaced     = regexp.MustCompile(`([a-z])[ _-]+(\d)`)
	pythonName = regexp.MustCompile(`^(?:cp|py|python|cpython)(\d)\.?(\d+t?)$`)
)

// bare returns text in lower case, without a separator between a word and its number:
// SM-90 becomes sm90.
func bare(text string) string { return spaced.ReplaceAllString(strings.ToLower(text), "$1$2") }

// alias returns the known value for which text is an alias: gfx942 for mi300x, 3.11 for
// cp311, sm_90 for SM90. An ambiguous name is not an alias.
func alias(text string, known []string) (string, bool) {
	want := bare(text)
	arch := cmp.Or(elf.Architecture(text), want) // gfx90a names the known value mi200 too
	i := slices.IndexFunc(known, func(k string) bool { return bare(k) == want })
	if i < 0 && arch != "" {
		i = slices.IndexFunc(known, func(k string) bool { return k == arch || elf.Architecture(k) == arch })
	}
	if m := pythonName.FindStringSubmatch(want); i < 0 && m != nil {
		i = slices.Index(known, m[1]+"."+m[2])
	}
	if i < 0 {
		return "", false
	}
	return known[i], true
}

// advise adds a hint to an error about part, a value of a list. It guesses no release and
// no GPU by their letters: 2.1.2 is far from 2.12, and code for one GPU runs on no other.
func advise(err *diag.Error, part string, known []string) error {
	known = Ascending(known)
	list := "known: " + strings.Join(known, ", ")
	if coarser, ok := Coarser(part, known); ok {
		return err.WithHint("did you mean %q? %s", coarser, list)
	}
	if Is(part) || elf.Architecture(part) != "" || elf.IsArchitecture(part) {
		return err.WithHint("%s", list)
	}
	if slices.ContainsFunc(known, Is) {
		known = append(known, Latest)
	}
	return err.WithHint("%s", diag.DidYouMean(part, known))
}
