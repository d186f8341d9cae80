package config

import (
	"strings"

	"builder/internal/input/store"
)

// A Shown is one setting without flags as printed by config show.
type Shown struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
	Place  string `json:"place"` // the variable, or file:line:column
}

// The origins of a setting other than flags, which apply to one run only.
const (
	FromVariable = "variable"
	FromFile     = "file"
)

// Shown lists the settings that a variable or the file makes, in the order of [Keys]. An
// empty variable selects the default and overrides the file. Possible secrets in addresses
// are redacted.
func (c Config) Shown(lookup func(name string) (value string, ok bool)) []Shown {
	all := []Shown{}
	for _, key := range keys {
		value, set := lookup(Variable(key.Name))
		s, written := c.Setting(key.Name)
		switch {
		case set && value != "":
			all = append(all, Shown{key.Name, redacted(value), FromVariable, Variable(key.Name)})
		case !set && written:
			all = append(all, Shown{key.Name, redacted(s.Value), FromFile, s.Pos.String()})
		}
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
