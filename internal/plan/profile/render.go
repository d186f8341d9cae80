package profile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"builder/internal/plan/matrix"
)

// A Format is an output format of an environment.
type Format string

// The formats.
const (
	Env  Format = "env"  // lines with the same meaning in a shell, Docker and systemd
	JSON Format = "json" // the complete [Environment]
)

// Formats lists every format, the default first.
func Formats() []Format { return []Format{Env, JSON} }

// Render returns the environment in a format. The result ends with a newline.
func (e Environment) Render(f Format) ([]byte, error) {
	switch f {
	case Env:
		return []byte(e.lines()), nil
	case JSON:
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false) // print >=6.0, not \u003e=6.0
		err := enc.Encode(e)
		return b.Bytes(), err
	}
	return nil, fmt.Errorf("unknown format %q", f)
}

// lines writes one variable per line, with its reason above. Options and notes become
// comments, because an environment cannot contain them.
func (e Environment) lines() string {
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
