package docscript

import (
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// differs returns the difference between the lines on the page and the output of the
// command, or "" if they agree.
func (b Block) differs(c Command, printed string) string {
	shown, got := b.plain(strings.Join(c.Shown, "\n")), b.plain(strings.TrimSuffix(printed, "\n"))
	if shown == got || b.Cut && matches(strings.Split(shown, "\n"), strings.Split(got, "\n")) {
		return ""
	}
	return cmp.Diff(strings.Split(shown, "\n"), strings.Split(got, "\n"))
}

// plain replaces everything variable with a fixed text.
func (b Block) plain(text string) string {
	for _, v := range b.Varies {
		as := strings.ToUpper(v.Name)
		if v.Name == "columns" {
			as = "  "
		}
		text = v.pattern.ReplaceAllString(text, as)
	}
	return text
}

// matches reports whether the lines equal those shown, in which a line of three dots
// matches any number of lines.
func matches(shown, got []string) bool {
	i := slices.Index(shown, "...")
	if i < 0 {
		return slices.Equal(shown, got)
	}
	if len(got) < i || !slices.Equal(shown[:i], got[:i]) {
		return false
	}
	for rest := got[i:]; ; rest = rest[1:] {
		if matches(shown[i+1:], rest) {
			return true
		}
		if len(rest) == 0 {
			return false
		}
	}
}
