package config

import "builder/internal/base/diag"

// Origin is where a setting comes from.
type Origin string

// The origins of a setting, beside a flag, which no other run has.
const (
	FromVariable Origin = "variable"
	FromFile     Origin = "file"
	FromDefault  Origin = "default"
)

// An Effective is what counts for a key where no flag is given. Value is empty
// where the default counts, and Pos unless a file does.
type Effective struct {
	Key    string
	Value  string
	Origin Origin
	Pos    diag.Pos
}

// Effective returns what counts for every key, in the order of [Keys]. A variable
// that is set to nothing means the default, whatever the files say.
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
