package sbom

import (
	"net/url"
	"strings"
)

// PURL returns the package URL of a release (https://github.com/package-url/purl-spec):
// pkg:pypi/numpy@1.26.4, pkg:deb/debian/libc6@2.41-12. Qualifiers are pairs of name and
// value, such as arch and amd64.
func PURL(kind, name, version string, qualifiers ...string) string {
	if kind == "pypi" {
		name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	}
	var b strings.Builder
	b.WriteString("pkg:" + kind + "/" + name + "@" + escape(version))
	for i := 0; i+1 < len(qualifiers); i += 2 {
		separator := "&"
		if i == 0 {
			separator = "?"
		}
		b.WriteString(separator + qualifiers[i] + "=" + escape(qualifiers[i+1]))
	}
	return b.String()
}

// escape percent-encodes all characters except unreserved ones and colons, as the
// specification requires.
func escape(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(url.QueryEscape(text), "+", "%20"), "%3A", ":")
}
