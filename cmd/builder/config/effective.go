package config

import "builder/internal/base/diag"

// Origin is the source of a setting.
type Origin string

// The origins of a setting other than flags, which apply to one run only.
const (
	FromVariable Origin = "variable"
	FromFile     Origin = "file"
	FromDefault  Origin = "default"
)

// An Effective is the value used for a key without a flag. Value is empty for the
// default. Pos is set only if a file has the key.
type Effective struct {
	Key    string
	Value  string
	Origin Origin
	Pos    diag.Pos
}

// Effective returns the value used for every key, in the order of [Keys]. An empty
// variable selects the default and overrides the files.
func (c Config) Effective(lookup func(name string) (value string, ok bool)) []Effective {
	all := make([]Effective, len(keys))
	for i, key := range keys {
		all[i] = Effective{Key: key.Name, Origin: FromDefault}
		value, set := lookup(Variable(key.Name))
		s, written := c.Setting(key.Name)
		switch {
		case set && value != "":
			all[i] = Effective{key.Name, value, FromVariable, diag.Pos{}}
		case !set && written:
			all[i] = Effective{key.Name, s.Value, FromFile, s.Pos}
		}
	}
	return all
}
