// Package diagnose recognises known failures in logs, libraries and wheels. The
// knowledge is data (see [Load]); this package is the engine that looks for all
// of it in one pass, in memory that does not grow with the log.
//
// A library is read as lines too, one fact each ("needs: libcudart.so.12", see
// [Facts]), so that one vocabulary describes failures of every kind:
//
//   - signs: at least one of these expressions matches some line;
//   - all-of: each of these matches some line, in any order;
//   - not: none of these matches any line;
//   - except: a line that one of these matches is not looked at.
//
// It reads what is there already, and asks no host: package doctor does.
package diagnose

import "slices"

// A Diagnosis is one known failure: how it is recognised, why it happens and
// what mends it.
type Diagnosis struct {
	Name      string    `yaml:"name" json:"name" jsonschema:"description=short and unique"`
	AppliesTo []Subject `yaml:"applies-to" json:"applies-to" jsonschema:"minItems=1,enum=build-log,enum=runtime-log,enum=library,enum=wheel"`
	Severity  Severity  `yaml:"severity" json:"severity" jsonschema:"enum=error,enum=warning,enum=note"`
	// Symptom says that something else made it happen, which stands before it
	// where it is known.
	Symptom bool     `yaml:"symptom,omitempty" json:"symptom,omitempty" jsonschema:"description=something else made it happen"`
	Signs   []string `yaml:"signs,omitempty" json:"signs,omitempty" jsonschema:"description=regular expressions; one of them matches a line"`
	AllOf   []string `yaml:"all-of,omitempty" json:"all-of,omitempty" jsonschema:"description=regular expressions; each of them matches some line of the file"`
	Not     []string `yaml:"not,omitempty" json:"not,omitempty" jsonschema:"description=regular expressions; no line of the file matches one"`
	Except  []string `yaml:"except,omitempty" json:"except,omitempty" jsonschema:"description=regular expressions; a line that matches one is not looked at"`
	Cause   string   `yaml:"cause" json:"cause" jsonschema:"description=why it happens in one or two sentences"`
	Remedy  string   `yaml:"remedy" json:"remedy" jsonschema:"description=what to do"`
	// MendedBy is what of this tool mends it, where something does.
	MendedBy *Mender `yaml:"mended-by,omitempty" json:"mended-by,omitempty" jsonschema:"description=what of this tool mends it"`
	Source   string  `yaml:"source" json:"source" jsonschema:"description=https link or a file of docs/"`
	// Versions are constraints by axis or program, for people: a line that matches
	// is the failure whatever the versions.
	Versions map[string]string `yaml:"versions,omitempty" json:"versions,omitempty" jsonschema:"description=axis or program to constraint; where it is known to happen"`
	Examples Examples          `yaml:"examples" json:"examples" jsonschema:"description=each is the text of a small file"`

	Topic string `yaml:"-" json:"topic" jsonschema:"-"` // of the file that it stands in

	signs, allOf, not []pattern
	except            []pattern
}

// A Mender names one thing of this tool: a patch as recipe/name, a recipe's axis
// as recipe/axis, or an option of the command line or the environment.
type Mender struct {
	Patch  string `yaml:"patch,omitempty" json:"patch,omitempty" jsonschema:"description=recipe/name"`
	Axis   string `yaml:"axis,omitempty" json:"axis,omitempty" jsonschema:"description=recipe/axis"`
	Option string `yaml:"option,omitempty" json:"option,omitempty" jsonschema:"description=a flag as --jobs or a variable as BUILDER_HOME"`
}

// String says what it is and its name.
func (m Mender) String() string {
	switch {
	case m.Patch != "":
		return "the patch " + m.Patch
	case m.Axis != "":
		return "the axis " + m.Axis
	}
	return m.Option
}

// Examples prove the signs: every text of Match shows the failure, none of Miss
// does, however near it is. [Load] tries them all.
type Examples struct {
	Match []string `yaml:"match" json:"match" jsonschema:"minItems=1"`
	Miss  []string `yaml:"miss" json:"miss" jsonschema:"minItems=1"`
}

// A Subject is what a diagnosis can be made of.
type Subject string

// The subjects. Logs of both kinds are searched alike: only a person can tell
// them apart.
const (
	BuildLog   Subject = "build-log"
	RuntimeLog Subject = "runtime-log"
	Library    Subject = "library"
	Wheel      Subject = "wheel"
)

// Subjects lists every subject.
func Subjects() []Subject { return []Subject{BuildLog, RuntimeLog, Library, Wheel} }

// Severity says how bad a failure is.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // what was asked for does not come about
	Warning Severity = "warning" // it may, in another way than was meant
	Note    Severity = "note"    // good to know
)

// Severities lists every severity, the worst first.
func Severities() []Severity { return []Severity{Error, Warning, Note} }

// rank orders severities, the worst first.
func (s Severity) rank() int { return slices.Index(Severities(), s) }

// Hint says why and what to do in one line.
func (d Diagnosis) Hint() string { return d.Cause + "; " + d.Remedy + " (" + d.Source + ")" }
