package diagnose

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/plan/version"
)

// File is the content of one file: the failures of one topic.
type File struct {
	Topic     string      `yaml:"topic" json:"topic" jsonschema:"description=heading of these failures in docs/troubleshooting.md"`
	Diagnoses []Diagnosis `yaml:"diagnoses" json:"diagnoses" jsonschema:"minItems=1"`
}

// Load reads every *.yaml of fsys, in the order of their names. Positions in error
// messages begin with dir.
func Load(fsys fs.FS, dir string) ([]Diagnosis, error) {
	seen := map[string]string{} // the file of each name
	files, err := decode.Folder(fsys, dir, func(name string, data []byte) ([]Diagnosis, error) {
		f, index, err := parse(name, data)
		errs := []error{err}
		for i, d := range f.Diagnoses {
			if other, ok := seen[d.Name]; ok {
				errs = append(errs, diag.At(index.At("diagnoses[%d].name", i), "diagnosis %q is already in %s", d.Name, other))
			}
			seen[d.Name] = name
		}
		return f.Diagnoses, errors.Join(errs...)
	})
	return slices.Concat(files...), err
}

func parse(name string, data []byte) (File, decode.Index, error) {
	var f File
	index, err := decode.YAML(name, data, &f)
	if err != nil {
		return File{}, decode.Index{}, err
	}
	var errs []error
	if f.Topic == "" {
		errs = append(errs, diag.At(index.At("topic"), "topic is missing"))
	}
	for i := range f.Diagnoses {
		d := &f.Diagnoses[i]
		d.Topic = f.Topic
		c := checker{index, fmt.Sprintf("diagnoses[%d]", i), nil}
		c.fields(*d)
		c.expressions(d)
		if len(c.errs) == 0 {
			c.examples(*d)
		}
		errs = append(errs, c.errs...)
	}
	return f, index, errors.Join(errs...)
}

// checker collects the problems of one diagnosis as written.
type checker struct {
	index decode.Index
	at    string
	errs  []error
}

func (c *checker) problem(key, format string, args ...any) {
	c.errs = append(c.errs, diag.At(c.index.At("%s.%s", c.at, key), format, args...))
}

var diagnosisName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func (c *checker) fields(d Diagnosis) {
	if !diagnosisName.MatchString(d.Name) {
		c.problem("name", "the name of a diagnosis must be a word such as shm-small, not %q", d.Name)
	}
	c.prose("cause", d.Name, d.Cause)
	c.prose("remedy", d.Name, d.Remedy)
	if !strings.HasPrefix(d.Source, "https://") && !strings.HasPrefix(d.Source, "docs/") {
		c.problem("source", "%s: source must be an https link or a file of docs/, not %q", d.Name, d.Source)
	}
	if !slices.Contains(Severities(), d.Severity) {
		c.problem("severity", "severity: %q is not one of %q", d.Severity, Severities())
	}
	for _, name := range slices.Sorted(maps.Keys(d.Versions)) {
		if _, err := version.ParseConstraint(d.Versions[name]); err != nil {
			c.problem("versions."+name, "%s: %w", d.Name, err)
		}
	}
	if m := d.MendedBy; m != nil && len(slices.DeleteFunc([]string{m.Patch, m.Axis, m.Option}, func(s string) bool { return s == "" })) != 1 {
		c.problem("mended-by", "%s: mended-by must name one of patch, axis and option", d.Name)
	}
	if len(d.Examples.Match) == 0 || len(d.Examples.Miss) == 0 {
		c.problem("examples", "%s: examples must have at least one match and one miss", d.Name)
	}
}

// prose rejects texts unsuitable for the middle of a hint.
func (c *checker) prose(key, name, text string) {
	switch {
	case strings.TrimSpace(text) == "":
		c.problem(key, "%s: %s is missing", name, key)
	case strings.HasSuffix(text, "."), strings.Contains(text, "\n"):
		c.problem(key, "%s: %s must be one line without a full stop, because it is the middle of a hint", name, key)
	}
}

// expressions compiles the expressions of a diagnosis.
func (c *checker) expressions(d *Diagnosis) {
	if len(d.Signs)+len(d.AllOf) == 0 {
		c.problem("name", "%s: signs and all-of are missing: write at least one of them", d.Name)
	}
	compiled := func(key string, expressions []string) []pattern {
		var patterns []pattern
		for i, text := range expressions {
			p, err := compile(text)
			switch {
			case err != nil:
			case strings.HasPrefix(text, "^"):
				err = fmt.Errorf("%q matches only at the beginning of a line, where logs have times and ranks", text)
			case key != "except" && shortest(p.literals) < minLiteral:
				err = fmt.Errorf("%q can match without a fixed text of at least %d characters, which a fast search needs", text, minLiteral)
			}
			if err != nil {
				c.problem(fmt.Sprintf("%s[%d]", key, i), "%s: %w", d.Name, err)
				continue
			}
			patterns = append(patterns, p)
		}
		return patterns
	}
	d.signs = compiled("signs", d.Signs)
	d.allOf = compiled("all-of", d.AllOf)
	d.not = compiled("not", d.Not)
	d.except = compiled("except", d.Except)
}

// examples tests the examples. An unrecognised match and a recognised miss are errors.
func (c *checker) examples(d Diagnosis) {
	index := newIndex([]Diagnosis{d})
	try := func(key string, texts []string, want bool) {
		for i, text := range texts {
			s := index.scan()
			_, err := s.lines(strings.NewReader(text))
			if got := len(s.findings()) > 0; err != nil || got != want {
				c.problem(fmt.Sprintf("examples.%s[%d]", key, i), "%s: the diagnosis %s this example of a %s", d.Name, map[bool]string{true: "finds", false: "does not find"}[got], key)
			}
		}
	}
	try("match", d.Examples.Match, true)
	try("miss", d.Examples.Miss, false)
}
