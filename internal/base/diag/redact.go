package diag

import (
	"regexp"
	"strings"
)

// Where credentials stand in an address: before the host, of which a password may
// hold nearly anything, and in the query under names that say so.
var (
	password = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s"@:]*:(?:\\"|[^/\s"])*@`)
	user     = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s"'?#]*@`)
	token    = regexp.MustCompile(`(?i)([?&;][a-z0-9_.-]*(?:token|secret|passw(?:or)?d|signature|credential|api-?_?key|access-?_?key|auth)[a-z0-9_.-]*=)[^&;\s"'<>#)]+`)
)

// HasPassword reports whether an address in a text holds a password.
func HasPassword(text string) bool { return password.MatchString(text) }

// Redact takes credentials out of the addresses in a text: whatever stands before
// the host of a URL, and what a query calls a token or its like.
func Redact(text string) string {
	if strings.Contains(text, "://") {
		text = user.ReplaceAllString(password.ReplaceAllString(text, "$1"), "$1")
	}
	if strings.Contains(text, "=") {
		text = token.ReplaceAllString(text, "$1…")
	}
	return text
}
