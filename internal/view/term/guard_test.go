package term_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"builder/internal/view/term"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// guarded returns the output of a guard for parts written one by one.
func guarded(parts ...string) string {
	var b bytes.Buffer
	g := term.NewGuard(&b)
	for _, part := range parts {
		_, _ = io.WriteString(g, part)
	}
	_ = g.Flush()
	return b.String()
}

func TestGuard(t *testing.T) {
	for want, parts := range map[string][]string{
		"plain ✓ 長い\n\ttab\n":        {"plain ✓ 長い\n\ttab\n"},
		"red\n":                      {"\x1b[3", "8;5;1mred\x1b[0m\n"},
		"\x1b[1;31merror:\x1b[m x\n": {"\x1b[1;31merror:\x1b[m x\n"},
		"title\n":                    {"\x1b]0;own", "ed\x07title\n"},
		"a\nb\nc\n":                  {"a\r", "\nb\rc\r\n"},
		"長\n":                        {"\xe9\x95", "\xb7\n"},
		"\uFFFDx":                    {"\xe9", "x"},
		"esrever\n":                  {"\u202eesrever\u2066\n"},
		"| ::set-output name=x::y\n": {"::set-output name=x::y\n"},
		"|   ::stop-commands::y\n":   {"  ::stop-commands::y\n"},
		"|   ::add-mask::y\n":        {"  :", ":add-mask::y\n"},
		"| \u00a0::add-path::y\n":    {"\u00a0", "::add-path::y\n"},
		"| ::debug::y\n":             {":\u200b:debug::y\n"},
		"| ::error::y\n":             {"\ufe0f::error::y\n"},
		"| \x1b[1m::warning::y\n":    {"\x1b[1m", "::warning::y\n"},
		"a ::no-command::y\n":        {"a ", "::no-command::y\n"},
		"x # #[set-env]y\n":          {"x ##[set-env]y\n"},
		"x # #[set-env]y # #[z]\n":   {"x ##[set-env]y ##", "[z]\n"},
		"x # #vso[task]y\n":          {"x ##vso[task]y\n"},
		"y # #vso[task]y\n":          {"y ##vso", "[task]y\n"},
		"see ftp://h/x\n":            {"see ftp://u:p@h/x\n"},
		"ends":                       {"ends"},
	} {
		check.Same(t, fmt.Sprint(parts), want, guarded(parts...))
	}
}

var anyColour = regexp.MustCompile("\x1b\\[[0-9;]*m")

// obeyed returns the first line that a terminal or a CI server would execute.
func obeyed(text string) string {
	for line := range strings.SplitSeq(anyColour.ReplaceAllString(text, ""), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "::") || strings.Contains(line, "##[") || strings.Contains(line, "##vso[") {
			return line
		}
		if strings.ContainsFunc(line, func(r rune) bool {
			return r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector)
		}) {
			return line
		}
	}
	return ""
}

// However it is split into writes, no output of a guard is executed.
func FuzzGuard(f *testing.F) {
	f.Add("\x1b[31m::set", "-output::\x1b]0;t\x07\r\n\u009b", "##")
	f.Add(":", ":a::", "[x]")
	f.Add("##vso", "[x]", "\x1b")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		check.Same(t, "the obeyed line", "", obeyed(guarded(a, b, c)))
	})
}

// The JSON decodes to the same value, and no text in it is executed.
func FuzzJSON(f *testing.F) {
	f.Add("a\u202e\u009b\x7f ##[x] \U000e0041\t\\u")
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(s, "://") || strings.Contains(s, "=") {
			return // credentials are removed
		}
		var b bytes.Buffer
		must.Succeed(t, term.JSON(&b, s, ""))
		check.Same(t, "the obeyed line", "", obeyed(b.String()))
		check.Same(t, "guarded", b.String(), guarded(b.String()))
		var got string
		if err := json.Unmarshal(b.Bytes(), &got); err != nil || got != strings.ToValidUTF8(s, "\uFFFD") && !strings.ContainsRune(got, '\uFFFD') {
			t.Errorf("%q is read as %q, %v", s, got, err)
		}
	})
}
