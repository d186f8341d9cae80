package host

import (
	"path"
	"slices"
	"strings"
)

// A Mount is a line of /proc/self/mountinfo.
type Mount struct {
	Point, Kind string
	Options     []string
}

// Mounts lists the mounts in the order of mounting.
func (h Host) Mounts() ([]Mount, error) {
	text, err := h.Text("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var all []Mount
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 6 || len(kind) < 1 {
			continue
		}
		all = append(all, Mount{unescape.Replace(fields[4]), kind[0], strings.Split(fields[5], ",")})
	}
	return all, nil
}

// unescape decodes the kernel's escapes for white space and backslashes in paths.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// Mount returns the mount of a path: the deepest, and the last if several have the same
// mount point.
func (h Host) Mount(name string) (on Mount, found bool) {
	all, err := h.Mounts()
	if err != nil {
		return Mount{}, false
	}
	name = path.Clean(name)
	for _, m := range all {
		under := m.Point == "/" || name == m.Point || strings.HasPrefix(name, m.Point+"/")
		if under && len(m.Point) >= len(on.Point) {
			on, found = m, true
		}
	}
	return on, found
}

// Has reports whether the mount has an option.
func (m Mount) Has(option string) bool { return slices.Contains(m.Options, option) }
