package doctor

import (
	"path"
	"slices"
	"strings"
)

// A mount is a line of /proc/self/mountinfo.
type mount struct {
	point, kind string
	options     []string
}

// mounts lists what is mounted, in the order of mounting.
func (h Host) mounts() ([]mount, error) {
	text, err := h.text("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var all []mount
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 6 || len(kind) < 1 {
			continue
		}
		all = append(all, mount{unescape.Replace(fields[4]), kind[0], strings.Split(fields[5], ",")})
	}
	return all, nil
}

// unescape undoes what the kernel does to spaces in paths.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// mount returns the mount that a path lies on: the last of the deepest.
func (h Host) mount(name string) (on mount, found bool) {
	all, err := h.mounts()
	if err != nil {
		return mount{}, false
	}
	name = path.Clean(name)
	for _, m := range all {
		under := m.point == "/" || name == m.point || strings.HasPrefix(name, m.point+"/")
		if under && len(m.point) >= len(on.point) {
			on, found = m, true
		}
	}
	return on, found
}

func (m mount) has(option string) bool { return slices.Contains(m.options, option) }
