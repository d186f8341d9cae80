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
	// The specification requires all characters to be percent-encoded except unreserved ones
	// and colons.
	return "pkg:" + kind + "/" + name + "@" + strings.NewReplacer("+", "%20", "%3A", ":").Replace(url.QueryEscape(version))
}
