package profile

import (
	"fmt"
	"strings"

	"builder/internal/plan/matrix"
)

// Lines writes one variable per line, with its reason above. The lines have the same
// meaning in a shell, Docker and systemd. Options and notes become comments, because an
// environment cannot contain them.
func (e Environment) Lines() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Run-time environment of %s: %s.\n", e.Profile, matrix.Words(e.Axes))
	for _, v := range e.Variables {
		fmt.Fprintf(&b, "\n%s%s=%s\n", v.comment(), v.Name, v.Value)
	}
	for _, o := range e.Options {
		fmt.Fprintf(&b, "\n%s# option: %s\n", o.comment(), written(o.Name, o.Value))
	}
	for _, n := range e.Notes {
		fmt.Fprintf(&b, "\n# note: %s\n# %s\n", n.Text, n.Source)
	}
	return b.String()
}

// comment returns the reason for a value, its range, and its source.
func (v Value) comment() string {
	if v.Because == "" {
		return "# requested\n"
	}
	text := "# " + v.Because + "\n"
	if len(v.When) > 0 {
		text += "# applies to: " + matrix.Words(v.When) + "\n"
	}
	if v.Where != "" {
		text += "# place: " + v.Where + "\n"
	}
	return text + fmt.Sprintf("# %s: %s\n", v.Known, v.Source)
}
