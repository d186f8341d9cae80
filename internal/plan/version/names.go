package version

import (
	"cmp"
	"fmt"
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

// named returns the known value for which text is an alias: gfx942 for mi300x, 3.11 for
// cp311, sm_90 for SM90. An ambiguous name is not an alias.
func named(text string, known []string) (string, bool) {
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

var (
	prefixed   = regexp.MustCompile(`^[A-Za-z]+[ _=-]*(\d.*)$`)                     // rocm6.1
	andNewer   = regexp.MustCompile(`^([\w.]+)\+$`)                                 // 5.7+
	anyBelow   = regexp.MustCompile(`^([\w.]+)\.[x*]$`)                             // 6.1.x
	span       = regexp.MustCompile(`^(\d[\w.]*) ?(?:-|–|\.\.+|:|to) ?(\d[\w.]*)$`) // 5.7-6.1
	caret      = regexp.MustCompile(`^\^(\d[\w.]*)$`)                               // ^6.1
	local      = regexp.MustCompile(`^(\d[\w.]*)\+\w[\w.]*$`)                       // 2.11.0+cu130
	capability = regexp.MustCompile(`^(?:(?:compute|sm)_?)?(\d+)\.?(\d)a?$`)        // compute_90, 9.0
	separators = regexp.MustCompile(` *(?:[,;|/&\s]|\band\b|\bor\b)+ *`)
)

// operators replaces comparison operators of other languages.
var operators = strings.NewReplacer("=>", ">=", "=<", "<=", "≥", ">=", "≤", "<=", "<>", "!=", "~=", "~>", ">= ", ">=", "<= ", "<=", "> ", ">", "< ", "<")

// otherWords maps words of other tools to values.
var otherWords = map[string]string{
	"yes": "on", "true": "on", "1": "on", "no": "off", "false": "off", "0": "off",
	"ib": "infiniband", "rocev2": "roce", "ethernet": "socket", "eth": "socket", "tcp": "socket", "local": "single-node",
}

// otherName guesses the value that another tool writes as word: sm_90 for compute_90,
// gfx90a for gfx90a:xnack-, 2.11.0 for 2.11.0+cu130, on for yes.
func otherName(word string) string {
	word = strings.ToLower(strings.TrimSpace(word))
	if m := local.FindStringSubmatch(word); m != nil {
		return m[1]
	}
	if target, _, ok := strings.Cut(word, ":"); ok && strings.HasPrefix(target, "gfx") {
		return target
	}
	if m := capability.FindStringSubmatch(word); m != nil {
		return "sm_" + m[1] + m[2]
	}
	return cmp.Or(otherWords[word], word)
}

// meant guesses the intended text in the syntax of [Select]. It returns "" if it has no
// guess.
func meant(text string, known []string) string {
	tidy := operators.Replace(strings.Trim(text, " ,;[]{}()\"'`"))
	tries := []string{separators.ReplaceAllString(tidy, ","), tidy, line(tidy, known), strings.ToLower(tidy)}
	words := strings.Split(tidy, ",")
	for i, word := range words {
		words[i] = otherName(word)
	}
	tries = append(tries, strings.Join(words, ","))
	if m := caret.FindStringSubmatch(tidy); m != nil {
		if v, err := Parse(m[1]); err == nil {
			tries = append(tries, fmt.Sprintf(">=%s,<%d", m[1], v.numbers()[0]+1))
		}
	}
	if m := andNewer.FindStringSubmatch(tidy); m != nil {
		tries = append(tries, ">="+m[1])
	}
	if m := anyBelow.FindStringSubmatch(tidy); m != nil {
		tries = append(tries, m[1])
		if v, err := Parse(m[1]); err == nil && v.segments == 1 {
			tries = append(tries, strings.Trim(rangeOf(v), "'"))
		}
	}
	if m := span.FindStringSubmatch(tidy); m != nil {
		tries = append(tries, ">="+m[1]+",<="+m[2])
	}
	if rest, ok := strings.CutPrefix(tidy, "!"); ok {
		tries = append(tries, "!="+rest)
	}
	if m := prefixed.FindStringSubmatch(tidy); m != nil {
		tries = append(tries, m[1], line(m[1], known))
	}
	for _, try := range tries {
		if _, _, err := choose(try, known); try != text && err == nil {
			return try
		}
	}
	return ""
}

// line returns the known release line of a release: 6.1 for 6.1.3. It serves only for
// hints and is not an alias, because a cell for 6.1 is built with one exact release of
// 6.1.
func line(text string, known []string) string {
	if _, err := Parse(text); err != nil {
		return ""
	}
	for parts := strings.Split(text, "."); len(parts) > 2; {
		parts = parts[:len(parts)-1]
		if short := strings.Join(parts, "."); slices.Contains(known, short) {
			return short
		}
	}
	return ""
}

// advise adds a hint to an error about part, a part of text. The hint proposes a
// replacement for the whole text.
func advise(err *diag.Error, text, part string, known []string) error {
	if err.Hint != "" {
		return err
	}
	known = Ascending(known)
	list := "known: " + strings.Join(known, ", ")
	switch try := meant(text, known); {
	case strings.ContainsAny(try, "<>=!~"): // quoted, because a shell reads < and > as redirections
		return err.WithHint("did you mean '%s'? %s", try, list)
	case try != "":
		return err.WithHint("did you mean %q? %s", try, list)
	}
	if arch := elf.Architecture(part); arch != "" {
		return err.WithHint("code for this GPU has the target %s, which is not a known value; %s", arch, list)
	}
	near := adjacent(part, known)
	switch {
	case elf.IsArchitecture(part): // not a typing error: its code runs on no other GPU
		return err.WithHint("%s", list)
	case near == nil:
		return err.WithHint("%s", diag.DidYouMean(part, known))
	case diag.Nearest(part, known) == "": // far from every known release
		return err.WithHint("%s", list)
	}
	return err.WithHint("did you mean %q? %s", near[0], list)
}

// adjacent returns the known releases just below and just above a version, or nil if
// text is no version. The release nearest in letters may be far away: 2.1.2 for 2.12.
func adjacent(text string, known []string) []string {
	v, err := Parse(text)
	if err != nil {
		return nil
	}
	var below, above []string
	for _, k := range known { // ascending
		switch other, err := Parse(k); {
		case err != nil:
		case Compare(other, v) < 0:
			below = []string{k}
		case above == nil:
			above = []string{k}
		}
	}
	return append(below, above...)
}
