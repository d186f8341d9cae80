// Package profile says in which environment a stack runs: the variables and
// options that make it work on given versions, GPUs and fabric, each with its
// reason, the range that it holds for, and where that is known from.
//
// What is known is data (see [Load]); this package chooses from it. A profile is
// of one combination of its axes. What a user adds is compared with it, and what
// contradicts is refused, all of it at once: a setting that is silently without
// effect costs more than one that is missing. Nothing is set here: an environment is
// written in a format that somebody else reads.
package profile

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"builder/internal/base/decode"
	"builder/internal/plan/recipe"
)

// A Profile is what a human wrote about the environment of one stack.
type Profile struct {
	Name           string          `yaml:"name" json:"name" jsonschema:"description=name of the profile; also the name of the file"`
	Summary        string          `yaml:"summary" json:"summary" jsonschema:"description=one line for the list of profiles"`
	Axes           []recipe.Axis   `yaml:"axes" json:"axes" jsonschema:"minItems=1,description=what the environment depends on; each is a flag"`
	Compatible     []recipe.Rule   `yaml:"compatible,omitempty" json:"compatible,omitempty" jsonschema:"description=which combinations work at all"`
	ReleasedWith   *Pairing        `yaml:"released-with,omitempty" json:"released-with,omitempty" jsonschema:"description=which values upstream released together; what a command line leaves open follows them"`
	Settings       []Setting       `yaml:"settings" json:"settings" jsonschema:"minItems=1"`
	Notes          []Note          `yaml:"notes,omitempty" json:"notes,omitempty" jsonschema:"description=what no setting can do"`
	Contradictions []Contradiction `yaml:"contradictions,omitempty" json:"contradictions,omitempty" jsonschema:"description=settings that do not go together or not with a combination"`

	index decode.Index // places in the file, for faults found after decoding
}

// A Pairing says which values of axes upstream released together. Other
// combinations are possible, and are told from these by a note.
type Pairing struct {
	Rows    []recipe.Condition `yaml:"rows" json:"rows" jsonschema:"minItems=1"`
	Because string             `yaml:"because" json:"because" jsonschema:"description=what a note says of a combination that is in no row"`
	Source  string             `yaml:"source" json:"source" jsonschema:"format=uri"`
}

// A Setting is one variable or one option of the program that holds where its
// condition does.
type Setting struct {
	Env    string           `yaml:"env,omitempty" json:"env,omitempty" jsonschema:"description=name of a variable"`
	Option string           `yaml:"option,omitempty" json:"option,omitempty" jsonschema:"description=name of an option with its dashes"`
	Value  string           `yaml:"value" json:"value"`
	When   recipe.Condition `yaml:"when,omitempty" json:"when,omitempty" jsonschema:"description=constraints by axis; everywhere if there is none"`
	Where  string           `yaml:"where,omitempty" json:"where,omitempty" jsonschema:"description=where it has to stand to have an effect"`
	// Replaceable says that another value, of the user, is as right.
	Replaceable bool   `yaml:"replaceable,omitempty" json:"replaceable,omitempty" jsonschema:"description=a value of the user takes its place"`
	Because     string `yaml:"because" json:"because" jsonschema:"description=the reason in one line"`
	Source      string `yaml:"source" json:"source" jsonschema:"format=uri"`
	Known       Known  `yaml:"known" json:"known" jsonschema:"enum=source,enum=documented,enum=reported,enum=unconfirmed,description=how the reason is known"`
}

// name is what the setting is called where it stands.
func (s Setting) name() string { return s.Env + s.Option }

// Known says how a reason is known.
type Known string

// The ways.
const (
	Source      Known = "source"      // read in the released program
	Documented  Known = "documented"  // upstream's documentation says so
	Reported    Known = "reported"    // an issue or a thread says so
	Unconfirmed Known = "unconfirmed" // it is told, and no report of it was found
)

// knowns lists every way, the surest first.
func knowns() []Known { return []Known{Source, Documented, Reported, Unconfirmed} }

// A Note is what a user of a combination has to know and no setting can do.
type Note struct {
	When   recipe.Condition `yaml:"when,omitempty" json:"when,omitempty"`
	Text   string           `yaml:"text" json:"text" jsonschema:"description=one line"`
	Source string           `yaml:"source" json:"source" jsonschema:"format=uri"`
}

// A Contradiction is a set of settings that do not go together, or not with the
// combinations where its condition holds.
type Contradiction struct {
	When recipe.Condition `yaml:"when,omitempty" json:"when,omitempty"`
	// Has maps names of variables and options to patterns of [path.Match]; all of
	// them match where it holds.
	Has     map[string]string `yaml:"has" json:"has" jsonschema:"description=names of settings to patterns of their values; * is any and ?* any but an empty one"`
	Lacks   []string          `yaml:"lacks,omitempty" json:"lacks,omitempty" jsonschema:"description=names of settings; it holds only where none of them is set"`
	Because string            `yaml:"because" json:"because" jsonschema:"description=the reason in one line"`
	Source  string            `yaml:"source" json:"source" jsonschema:"format=uri"`
	Instead string            `yaml:"instead" json:"instead" jsonschema:"description=what to do in one line"`
}

// An Asked is a setting that a user adds to a profile.
type Asked struct{ Name, Value string }

// String is the setting as it is written.
func (a Asked) String() string { return written(a.Name, a.Value) }

// written is a setting as it is written: a variable, or an option of a program.
func written(name, value string) string {
	switch {
	case !strings.HasPrefix(name, "-"):
		return name + "=" + value
	case value == "":
		return name
	}
	return name + " " + value
}

var (
	variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	option   = regexp.MustCompile(`^--[A-Za-z][A-Za-z0-9_.-]{0,126}$`)
	// plain means the same to every shell, Docker and systemd, without quotes.
	plain = regexp.MustCompile(`^[A-Za-z0-9_.,:/+=^@-]{0,1000}$`)
)

// ReadVariable reads NAME=VALUE. The value is in no error: it may be a secret.
func ReadVariable(text string) (Asked, error) {
	name, value, ok := strings.Cut(text, "=")
	switch {
	case !ok || !variable.MatchString(name):
		return Asked{}, fmt.Errorf("a variable is written NAME=VALUE")
	case !plain.MatchString(value):
		return Asked{}, fmt.Errorf("%s: the value would have to be quoted, which a shell, Docker and systemd do each in its own way", name)
	}
	return Asked{name, value}, nil
}

// ReadOption reads --NAME or --NAME=VALUE; the dashes may be left out.
func ReadOption(text string) (Asked, error) {
	name, value, _ := strings.Cut(text, "=")
	name = "--" + strings.TrimPrefix(name, "--")
	switch {
	case !option.MatchString(name):
		return Asked{}, fmt.Errorf("an option is written NAME or NAME=VALUE")
	case !plain.MatchString(value):
		return Asked{}, fmt.Errorf("%s: the value would have to be quoted", name)
	}
	return Asked{name, value}, nil
}

// AxisNames returns the names of all axes in the order of the profile.
func (p *Profile) AxisNames() []string {
	names := make([]string, len(p.Axes))
	for i, a := range p.Axes {
		names[i] = a.Name
	}
	return names
}

// inWords says a condition as a user would: ray >=2.45.0, fabric roce.
func inWords(when map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(when)) {
		parts = append(parts, name+" "+when[name])
	}
	return strings.Join(parts, ", ")
}
