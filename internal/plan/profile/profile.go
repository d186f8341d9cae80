// Package profile defines the run-time environments of stacks: the variables and
// options required for given versions, GPUs and network fabric. Each has its reason,
// the range for which it holds, and a source.
//
// The settings are data (see [Load]). This package selects those for one combination of
// the axes. It compares the user's own settings with them and reports all
// contradictions at once, because a setting that silently has no effect costs more than
// a missing one. The package sets no variables: it writes an environment in a format
// that other programs read.
package profile

import (
	"fmt"
	"regexp"
	"strings"

	"builder/internal/base/decode"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
)

// A Profile is the hand-written description of the environment of one stack.
type Profile struct {
	Name           string          `yaml:"name" json:"name" jsonschema:"description=name of the profile; also the name of the file"`
	Summary        string          `yaml:"summary" json:"summary" jsonschema:"description=one line for the list of profiles"`
	Axes           []recipe.Axis   `yaml:"axes" json:"axes" jsonschema:"minItems=1,description=what the environment depends on; each is a flag"`
	Compatible     []recipe.Rule   `yaml:"compatible,omitempty" json:"compatible,omitempty" jsonschema:"description=which combinations work at all"`
	ReleasedWith   *Pairing        `yaml:"released-with,omitempty" json:"released-with,omitempty" jsonschema:"description=which values upstream released together; what a command line leaves open follows them"`
	Settings       []Setting       `yaml:"settings" json:"settings" jsonschema:"minItems=1"`
	Notes          []Note          `yaml:"notes,omitempty" json:"notes,omitempty" jsonschema:"description=what no setting can do"`
	Contradictions []Contradiction `yaml:"contradictions,omitempty" json:"contradictions,omitempty" jsonschema:"description=settings that do not go together or not with a combination"`

	index decode.Index // positions in the file, for errors found after decoding
}

// A Pairing lists the values of axes that upstream released together. Other
// combinations are possible, but get a note.
type Pairing struct {
	Rows    []recipe.Condition `yaml:"rows" json:"rows" jsonschema:"minItems=1"`
	Because string             `yaml:"because" json:"because" jsonschema:"description=what a note says of a combination that is in no row"`
	Source  string             `yaml:"source" json:"source" jsonschema:"format=uri"`
}

// A Setting is one variable or one program option. It applies if its condition holds.
type Setting struct {
	Env    string           `yaml:"env,omitempty" json:"env,omitempty" jsonschema:"description=name of a variable"`
	Option string           `yaml:"option,omitempty" json:"option,omitempty" jsonschema:"description=name of an option with its dashes"`
	Value  string           `yaml:"value" json:"value"`
	When   recipe.Condition `yaml:"when,omitempty" json:"when,omitempty" jsonschema:"description=constraints by axis; everywhere if there is none"`
	Where  string           `yaml:"where,omitempty" json:"where,omitempty" jsonschema:"description=where it has to stand to have an effect"`
	// Replaceable is set if another value chosen by the user is equally valid.
	Replaceable bool   `yaml:"replaceable,omitempty" json:"replaceable,omitempty" jsonschema:"description=a value of the user takes its place"`
	Because     string `yaml:"because" json:"because" jsonschema:"description=the reason in one line"`
	Source      string `yaml:"source" json:"source" jsonschema:"format=uri"`
	Known       Known  `yaml:"known" json:"known" jsonschema:"enum=source,enum=documented,enum=reported,enum=unconfirmed,description=how the reason is known"`
}

// name returns the name of the variable or option.
func (s Setting) name() string { return s.Env + s.Option }

// Known is the kind of evidence for a reason: source (read in the source of the released
// program), documented (by upstream), reported (by an issue or a thread), or unconfirmed (a
// claim for which no report was found).
type Known string

// A Note is information about a combination that no setting can express.
type Note struct {
	When   recipe.Condition `yaml:"when,omitempty" json:"when,omitempty"`
	Text   string           `yaml:"text" json:"text" jsonschema:"description=one line"`
	Source string           `yaml:"source" json:"source" jsonschema:"format=uri"`
}

// A Contradiction is a set of settings that exclude each other, or that are invalid for
// combinations on which its condition holds.
type Contradiction struct {
	When recipe.Condition `yaml:"when,omitempty" json:"when,omitempty"`
	// Has maps names of variables and options to patterns of [path.Match]. All of them
	// must match.
	Has     map[string]string `yaml:"has" json:"has" jsonschema:"description=names of settings to patterns of their values; * is any and ?* any but an empty one"`
	Lacks   []string          `yaml:"lacks,omitempty" json:"lacks,omitempty" jsonschema:"description=names of settings; it holds only where none of them is set"`
	Differ  []string          `yaml:"differ,omitempty" json:"differ,omitempty" jsonschema:"description=names of settings of has; it holds only where their values differ"`
	Because string            `yaml:"because" json:"because" jsonschema:"description=the reason in one line"`
	Source  string            `yaml:"source" json:"source" jsonschema:"format=uri"`
	Instead string            `yaml:"instead" json:"instead" jsonschema:"description=what to do in one line"`
}

// An Asked is a setting that a user adds to a profile.
type Asked struct{ Name, Value string }

// String returns the setting in the syntax of variables or options.
func (a Asked) String() string { return written(a.Name, a.Value) }

// written returns a setting in the syntax of variables or options.
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
	plain    = regexp.MustCompile(`^[A-Za-z0-9_.,:/+=^@-]*$`)
)

// maxValue bounds the length of a value. In the pattern the bound would cost every start
// of builder milliseconds.
const maxValue = 1000

// isPlain reports whether a value has the same meaning in every shell, Docker and systemd,
// without quotes.
func isPlain(value string) bool { return len(value) <= maxValue && plain.MatchString(value) }

// ReadVariable parses NAME=VALUE. Errors omit the value, because it may be a secret.
func ReadVariable(text string) (Asked, error) {
	name, value, ok := strings.Cut(text, "=")
	switch {
	case !ok || !variable.MatchString(name):
		return Asked{}, fmt.Errorf("write a variable as NAME=VALUE")
	case !isPlain(value):
		return Asked{}, fmt.Errorf("%s: the value needs quotes, and a shell, Docker and systemd quote differently", name)
	}
	return Asked{name, value}, nil
}

// ReadOption parses --NAME or --NAME=VALUE. The dashes are optional.
func ReadOption(text string) (Asked, error) {
	name, value, _ := strings.Cut(text, "=")
	name = "--" + strings.TrimPrefix(name, "--")
	switch {
	case !option.MatchString(name):
		return Asked{}, fmt.Errorf("write an option as NAME or NAME=VALUE")
	case !isPlain(value):
		return Asked{}, fmt.Errorf("%s: the value needs quotes, which are not supported", name)
	}
	return Asked{name, value}, nil
}

// AxisNames returns the names of all axes in the order of the profile.
func (p *Profile) AxisNames() []string { return recipe.Names(p.Axes) }

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
