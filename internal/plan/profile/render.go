package profile

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A Format is a form in which an environment is written.
type Format string

// The formats.
const (
	Env           Format = "env"             // lines that a shell, Docker and systemd read alike
	JSON          Format = "json"            // everything, as [Environment]
	RayRuntimeEnv Format = "ray-runtime-env" // the JSON of a job of Ray: variables alone
	Dockerfile    Format = "dockerfile"      // instructions for an image
)

// Formats lists every format, the default first.
func Formats() []Format { return []Format{Env, JSON, RayRuntimeEnv, Dockerfile} }

// Render writes the environment in a format. The result ends with a line end.
func (e Environment) Render(f Format) ([]byte, error) {
	switch f {
	case Env:
		return []byte(e.lines("")), nil
	case Dockerfile:
		return []byte(e.lines("ENV ")), nil
	case JSON:
		return indented(e)
	case RayRuntimeEnv:
		vars := map[string]string{}
		for _, v := range e.Variables {
			vars[v.Name] = v.Value
		}
		return indented(map[string]any{"env_vars": vars})
	}
	return nil, fmt.Errorf("no format is called %q", f)
}

func indented(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false) // a constraint is >=6.0 and not \u003e=6.0
	err := enc.Encode(v)
	return []byte(b.String()), err
}

// lines writes a variable a line behind a keyword, with reasons above. Options and
// notes are comments: no environment carries them.
func (e Environment) lines(keyword string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Run-time environment of %s: %s.\n", e.Profile, inWords(e.Axes))
	for _, v := range e.Variables {
		fmt.Fprintf(&b, "\n%s%s%s=%s\n", v.comment(), keyword, v.Name, v.Value)
	}
	for _, o := range e.Options {
		fmt.Fprintf(&b, "\n%s# option: %s\n", o.comment(), written(o.Name, o.Value))
	}
	for _, n := range e.Notes {
		fmt.Fprintf(&b, "\n# note: %s\n# %s\n", n.Text, n.Source)
	}
	return b.String()
}

// comment says why a value is there, where it holds and what shows it.
func (v Value) comment() string {
	if v.Because == "" {
		return "# asked for\n"
	}
	text := "# " + v.Because + "\n"
	if len(v.When) > 0 {
		text += "# holds for: " + inWords(v.When) + "\n"
	}
	if v.Where != "" {
		text += "# place: " + v.Where + "\n"
	}
	return text + fmt.Sprintf("# %s: %s\n", v.Known, v.Source)
}
