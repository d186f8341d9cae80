package wheel

import (
	"regexp"
	"strings"
)

var separators = regexp.MustCompile(`[-_.]+`)

// NormalName normalizes a project name for comparison (PEP 503).
func NormalName(s string) string {
	return strings.ToLower(separators.ReplaceAllString(s, "-"))
}

// normalVersion returns a version for comparison (PEP 440), including the local part:
// builds with different local parts are different wheels. It knows the spellings that
// build tools write: any case, any separators in the local part, zeros at the end of the
// release, and an underscore of a file name in place of a dash. Of other spellings of
// one version, such as 1.0-rc1 and 1rc1, it is safe to say that they differ.
func normalVersion(s string) string {
	public, local, found := strings.Cut(strings.ToLower(strings.TrimSpace(s)), "+")
	public = strings.ReplaceAll(public, "_", "-")
	for strings.Trim(public, "0123456789.") == "" && strings.HasSuffix(public, ".0") {
		public = strings.TrimSuffix(public, ".0")
	}
	if !found {
		return public
	}
	return public + "+" + separators.ReplaceAllString(local, ".")
}
