package version

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

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
