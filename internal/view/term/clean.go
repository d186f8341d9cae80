package term

import (
	"regexp"
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"
)

// escapes matches whole escape sequences, so that no parameters remain: CSI, the
// strings OSC, DCS, SOS, PM and APC up to their terminator, and the short forms. An
// unmatched sequence loses its ESC in [printable] and becomes harmless text.
var escapes = regexp.MustCompile(
	"(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]" +
		"|\x1b[\\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\\\)" +
		"|\x1b[ -/]+[0-~]" +
		"|\x1b[0-OQ-WYZ\\\\`-~]")

var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// Clean makes untrusted text safe to print. It removes escape sequences, control
// characters and invisible characters, which can reorder a line or hide a word. Tabs
// become spaces and a carriage return becomes a newline. Newlines stay.
func Clean(s string) string {
	s = newlines.Replace(strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Map(printable, shown(s))
}

func printable(r rune) rune {
	switch {
	case r == '\n' || ' ' <= r && r <= '~': // most of all text
		return r
	case r == '\t' || unicode.In(r, unicode.Zl, unicode.Zp):
		return ' '
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return -1
	}
	return r
}

// OneLine cleans s and joins its lines into one. Spaces within a line stay: a message can
// quote two texts that differ in spaces only.
func OneLine(s string) string {
	var parts []string
	for line := range strings.Lines(Clean(s)) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, " ")
}

// Truncate shortens s to width columns and marks the cut.
func Truncate(s string, width int) string {
	switch {
	case lipgloss.Width(s) <= width:
		return s
	case width < 1:
		return ""
	case width == 1:
		return "…"
	}
	return lipgloss.NewStyle().Inline(true).MaxWidth(width-1).Render(s) + "…"
}
