package sbom

import (
	"net/url"
	"strings"
)

// PURL returns the package URL of a release (https://github.com/package-url/purl-spec):
// pkg:pypi/numpy@1.26.4, pkg:deb/debian/libc6@2.41-12.
func PURL(kind, name, version string) string {
	if kind == "pypi" {
		name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	}
	return "pkg:" + kind + "/" + name + "@" + escape(version)
}

// escape percent-encodes all characters except unreserved ones and colons, as the
// specification requires.
func escape(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(url.QueryEscape(text), "+", "%20"), "%3A", ":")
}
