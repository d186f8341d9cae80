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
