package diag

import (
	"regexp"
	"strings"
)

// Positions of credentials in a URL: before the host, where a password may contain
// nearly any character, and in the query under names such as token.
var (
	password = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s"@:]*:(?:\\"|[^/\s"])*@`)
	user     = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s"'?#]*@`)
	token    = regexp.MustCompile(`(?i)([?&;][a-z0-9_.-]*(?:token|secret|passw(?:or)?d|signature|credential|api-?_?key|access-?_?key|auth)[a-z0-9_.-]*=)[^&;\s"'<>#)]+`)
)

// HasPassword reports whether a text contains a URL with a password.
func HasPassword(text string) bool { return password.MatchString(text) }

// Redact removes credentials from the URLs in a text: user and password before the
// host, and query values with a name such as token.
func Redact(text string) string {
	if strings.Contains(text, "://") {
		text = user.ReplaceAllString(password.ReplaceAllString(text, "$1"), "$1")
	}
	if strings.Contains(text, "=") {
		text = token.ReplaceAllString(text, "$1…")
	}
	return text
}
