package config

import (
	"strings"

	"builder/internal/input/store"
)

// A Shown is one setting as printed by config show.
type Shown struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
	Place  string `json:"place,omitempty"` // the variable, or file:line:column
}

// ShownSettings lists the settings and then the axes. It redacts possible secrets in
// addresses.
func (c Config) ShownSettings(effective []Effective, defaults map[string]string) []Shown {
	var all []Shown
	for _, e := range effective {
		s := Shown{Key: e.Key, Value: redacted(e.Value), Origin: string(e.Origin)}
		switch e.Origin {
		case FromVariable:
			s.Place = Variable(e.Key)
		case FromFile:
			s.Place = e.Pos.String()
		default:
			s.Value = defaults[e.Key]
		}
		all = append(all, s)
	}
	for _, p := range c.Preferences {
		all = append(all, Shown{
			Key: "axes." + p.Recipe + "." + p.Axis, Value: p.Value, Origin: string(FromFile), Place: p.Pos.String(),
		})
	}
	return all
}

// redacted redacts possible secrets in every item of a list.
func redacted(value string) string {
	parts := strings.Split(value, ",")
	for i, part := range parts {
		parts[i] = store.Redact(part)
	}
	return strings.Join(parts, ",")
}
