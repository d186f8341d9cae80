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

// bare is a user and a password before a host without a scheme, as in the address of a
// registry. The groups are the character before them, the user, and the host's beginning.
var bare = regexp.MustCompile(`(^|[\s"'=,(])([A-Za-z0-9._%+$-]+):[^\s"'/@,]+@([A-Za-z0-9\[][A-Za-z0-9.-]*:?)`)

// redactBare removes user and password of one match of bare. A digest after the @ and the
// name of a scheme before the colon are no address with a password.
func redactBare(match string) string {
	parts := bare.FindStringSubmatch(match)
	if parts[2] == "file" || parts[2] == "mailto" || strings.HasPrefix(parts[3], "sha256:") {
		return match
	}
	return parts[1] + parts[3]
}

// HasPassword reports whether a text contains a URL with a password. Few texts contain a
// URL, and the search for its text is much faster than that for its form.
func HasPassword(text string) bool {
	return strings.Contains(text, "://") && password.MatchString(text)
}

// Redact removes credentials from the addresses in a text: user and password before the
// host, also without a scheme, and query values with a name such as token.
func Redact(text string) string {
	if strings.Contains(text, "://") {
		text = user.ReplaceAllString(password.ReplaceAllString(text, "$1"), "$1")
	}
	if strings.Contains(text, "@") {
		text = bare.ReplaceAllStringFunc(text, redactBare)
	}
	if strings.Contains(text, "=") {
		text = token.ReplaceAllString(text, "$1…")
	}
	return text
}
