// Package diagnose recognises known failures in the logs of builds and jobs. The known
// failures are data (see [Load]). This package searches for all of them in one pass,
// with memory that does not grow with the log.
//
//   - signs: at least one of these expressions matches some line;
//   - all-of: each of these matches some line, in any order;
//   - not: none of these matches any line;
//   - except: signs and all-of ignore a line that matches any of these.
//
// The package reads existing logs and probes no host. Package doctor does.
package diagnose

import "slices"

// A Diagnosis is one known failure: its signs, its cause and its remedy.
type Diagnosis struct {
	Name     string   `yaml:"name" json:"name" jsonschema:"description=short and unique"`
	Severity Severity `yaml:"severity" json:"severity" jsonschema:"enum=error,enum=warning,enum=note"`
	// Symptom is set if another failure causes this one. Among findings of one
	// severity, causes come before symptoms.
	Symptom bool     `yaml:"symptom,omitempty" json:"symptom,omitempty" jsonschema:"description=something else made it happen"`
	Signs   []string `yaml:"signs,omitempty" json:"signs,omitempty" jsonschema:"description=regular expressions; one of them matches a line"`
	AllOf   []string `yaml:"all-of,omitempty" json:"all-of,omitempty" jsonschema:"description=regular expressions; each of them matches some line of the file"`
	Not     []string `yaml:"not,omitempty" json:"not,omitempty" jsonschema:"description=regular expressions; no line of the file matches one"`
	Except  []string `yaml:"except,omitempty" json:"except,omitempty" jsonschema:"description=regular expressions; a line that matches one is not looked at"`
	Cause   string   `yaml:"cause" json:"cause" jsonschema:"description=why it happens in one or two sentences"`
	Remedy  string   `yaml:"remedy" json:"remedy" jsonschema:"description=what to do"`
	// MendedBy names a part of builder that mends the failure, if there is one.
	MendedBy *Mender `yaml:"mended-by,omitempty" json:"mended-by,omitempty" jsonschema:"description=what of this tool mends it"`
	Source   string  `yaml:"source" json:"source" jsonschema:"description=https link or a file of docs/"`
	// Versions are constraints by axis or program, for information only: a matching
	// line shows the failure regardless of versions.
	Versions map[string]string `yaml:"versions,omitempty" json:"versions,omitempty" jsonschema:"description=axis or program to constraint; where it is known to happen"`
	Examples Examples          `yaml:"examples" json:"examples" jsonschema:"description=each is the text of a small file"`

	Topic string `yaml:"-" json:"topic" jsonschema:"-"` // of its file

	signs, allOf, not []pattern
	except            []pattern
}

// A Mender names a part of builder: a patch as recipe/name, a recipe's axis as
// recipe/axis, or an option of the command line or the environment.
type Mender struct {
	Patch  string `yaml:"patch,omitempty" json:"patch,omitempty" jsonschema:"description=recipe/name"`
	Axis   string `yaml:"axis,omitempty" json:"axis,omitempty" jsonschema:"description=recipe/axis"`
	Option string `yaml:"option,omitempty" json:"option,omitempty" jsonschema:"description=a flag as --jobs or a variable as BUILDER_HOME"`
}

// String returns the kind and the name.
func (m Mender) String() string {
	switch {
	case m.Patch != "":
		return "the patch " + m.Patch
	case m.Axis != "":
		return "the axis " + m.Axis
	}
	return m.Option
}

// Examples prove the signs. Every text of Match shows the failure. No text of Miss
// does, however similar it is. [Load] tests them all.
type Examples struct {
	Match []string `yaml:"match" json:"match" jsonschema:"minItems=1"`
	Miss  []string `yaml:"miss" json:"miss" jsonschema:"minItems=1"`
}

// Severity is the severity of a failure.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the requested result is not produced
	Warning Severity = "warning" // the result may differ from the intended one
	Note    Severity = "note"    // information
)

// Severities lists every severity, the worst first.
func Severities() []Severity { return []Severity{Error, Warning, Note} }

// rank orders severities, the worst first.
func (s Severity) rank() int { return slices.Index(Severities(), s) }

// Hint returns cause, remedy and source in one line.
func (d Diagnosis) Hint() string { return d.Cause + "; " + d.Remedy + " (" + d.Source + ")" }
