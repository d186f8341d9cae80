package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"

	"charm.land/lipgloss/v2"

	"builder/internal/base/diag"
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

// JSON writes a value as JSON safe to print. It keeps < and > as they are. It escapes
// the commands of CI servers and the characters removed by [Clean]. It removes
// credentials.
func JSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, ShownJSON(b.String()))
	return err
}

// ShownJSON makes encoded JSON safe to print, as [JSON] does.
func ShownJSON(text string) string {
	// In valid JSON, ## and unprintable characters occur only inside strings.
	text = commands.ReplaceAllString(diag.Redact(text), "#\\u0023$1[")
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || printable(r) == r:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, "\\u%04x\\u%04x", high, low)
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}
