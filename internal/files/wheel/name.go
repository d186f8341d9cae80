package wheel

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Name holds the parts of a wheel's file name (PEP 427).
type Name struct {
	Distribution string
	Version      string // including the local part, as written
	Build        string // build tag, usually empty
	Python       string // tags, joined by dots
	ABI          string
	Platform     string
}

// filePattern has a group for each part of a file name. The fourth one is the build tag.
var filePattern = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._]*[A-Za-z0-9])?)-([A-Za-z0-9][A-Za-z0-9._!+]*)(-([0-9][A-Za-z0-9._]*))?` +
	`-(` + tags + `)-(` + tags + `)-(` + tags + `)\.whl$`)

const tags = `[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*`

// ParseName parses the base name of a wheel.
func ParseName(file string) (Name, error) {
	m := filePattern.FindStringSubmatch(file)
	switch {
	case !strings.HasSuffix(file, ".whl"):
		return Name{}, fmt.Errorf("parsing wheel name %q: it does not end in .whl", file)
	case m == nil:
		return Name{}, fmt.Errorf("parsing wheel name %q: want distribution-version[-build]-python-abi-platform.whl", file)
	}
	return Name{m[1], m[2], m[4], m[5], m[6], m[7]}, nil
}

// String returns the file name.
func (n Name) String() string {
	parts := []string{n.Distribution, n.Version, n.Build, n.Python, n.ABI, n.Platform}
	if n.Build == "" {
		parts = slices.Delete(parts, 2, 3)
	}
	return strings.Join(parts, "-") + ".whl"
}

// HasVersion reports whether the name has this version according to PEP 440, including
// the local part.
func (n Name) HasVersion(version string) bool {
	return normalVersion(version) == normalVersion(n.Version)
}

// IsLibrary reports whether a member has the name of a shared library. Linker scripts
// have such names too.
func IsLibrary(member string) bool {
	base := path.Base(member)
	return strings.HasSuffix(base, ".so") || strings.Contains(base, ".so.")
}

// hasProject reports whether the wheel is named after a project.
func (n Name) hasProject(name string) bool { return NormalName(name) == NormalName(n.Distribution) }

// Tags returns the compatibility tags of the name, sorted and expanded:
// py2.py3-none-any gives two.
func (n Name) Tags() []string {
	tags, _ := expandTag(strings.Join([]string{n.Python, n.ABI, n.Platform}, "-"))
	return tags
}

// maxTags limits the expansion of one compressed tag. The widest real ones expand to a
// dozen.
const maxTags = 4096

// expandTag expands a compressed tag to single tags, sorted.
func expandTag(tag string) ([]string, bool) {
	sets := strings.Split(tag, "-")
	if len(sets) != 3 {
		return nil, false
	}
	python, abi, platform := strings.Split(sets[0], "."), strings.Split(sets[1], "."), strings.Split(sets[2], ".")
	var tags []string
	for _, p := range python {
		for _, a := range abi {
			for _, o := range platform {
				if len(tags) == maxTags {
					return nil, false
				}
				tags = append(tags, p+"-"+a+"-"+o)
			}
		}
	}
	return sortedSet(tags), true
}

func sortedSet(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}

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

// manylinux matches platform tags with a glibc version (PEP 600). legacy maps the three
// older names to their versions (PEP 513, 571 and 599).
var (
	manylinux = regexp.MustCompile(`^(manylinux1|manylinux2010|manylinux2014|manylinux_(\d{1,3})_(\d{1,3}))_([a-z]\w*)$`)
	legacy    = map[string]string{"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
)

// Glibc returns the machine of a platform tag, and the oldest glibc it supports, such
// as 2.28. Both are "" for a tag without a glibc version, such as linux_x86_64.
func Glibc(platform string) (glibc, machine string) {
	m := manylinux.FindStringSubmatch(platform)
	switch {
	case m == nil:
		return "", ""
	case m[2] == "":
		return legacy[m[1]], m[4]
	}
	return m[2] + "." + m[3], m[4]
}
