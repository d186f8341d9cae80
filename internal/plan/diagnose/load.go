package diagnose

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"builder/internal/base/decode"
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
		var all File
		f, err := decode.YAML(name, data, &all)
		if err != nil {
			return nil, err
		}
		for i := range all.Diagnoses {
			d := &all.Diagnoses[i]
			d.Topic = all.Topic
			c := checker{f, fmt.Sprintf("diagnoses[%d].", i)}
			c.fields(*d)
			if c.expressions(d) {
				c.examples(*d)
			}
			if other, ok := seen[d.Name]; ok {
				c.problem("name", "diagnosis %q is already in %s", d.Name, other)
			}
			seen[d.Name] = name
		}
		return all.Diagnoses, f.Err()
	})
	return slices.Concat(files...), err
}

// checker adds the problems of one diagnosis as written.
type checker struct {
	*decode.File
	at string
}

func (c checker) problem(key, format string, args ...any) { c.Add(c.at+key, format, args...) }

var diagnosisName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func (c checker) fields(d Diagnosis) {
	if !diagnosisName.MatchString(d.Name) {
		c.problem("name", "the name of a diagnosis must be a word such as shm-small, not %q", d.Name)
	}
	c.Prose(c.at+"cause", d.Cause)
	c.Prose(c.at+"remedy", d.Remedy)
	if !strings.HasPrefix(d.Source, "https://") && !strings.HasPrefix(d.Source, "docs/") {
		c.problem("source", "%s: source must be an https link or a file of docs/, not %q", d.Name, d.Source)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Versions)) {
		if _, err := version.ParseConstraint(d.Versions[name]); err != nil {
			c.problem("versions."+name, "%s: %w", d.Name, err)
		}
	}
	if m := d.MendedBy; m != nil && len(slices.DeleteFunc([]string{m.Patch, m.Axis, m.Option}, func(s string) bool { return s == "" })) != 1 {
		c.problem("mended-by", "%s: mended-by must name one of patch, axis and option", d.Name)
	}
}

// expressions compiles the expressions of a diagnosis. It reports whether all are valid.
func (c checker) expressions(d *Diagnosis) bool {
	valid := len(d.Signs)+len(d.AllOf) > 0
	if !valid {
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
				valid = false
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
	return valid
}

// examples tests the examples. An unrecognised match and a recognised miss are errors.
func (c checker) examples(d Diagnosis) {
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

// minLiteral is the shortest text rare enough in logs to be useful for a search.
const minLiteral = 4

// A pattern is an expression with literals. If there are literals, each match contains
// at least one of them, so a line without any needs no matching.
type pattern struct {
	*regexp.Regexp
	literals []string
}

func compile(expression string) (pattern, error) {
	re, err := regexp.Compile(expression)
	if err != nil {
		return pattern{}, fmt.Errorf("%q is not a regular expression: %w", expression, err)
	}
	tree, err := syntax.Parse(expression, syntax.Perl)
	return pattern{re, required(tree)}, err
}

// required returns texts of which every match contains at least one, or nil if there
// are none.
func required(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return []string{string(re.Rune)}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if r := required(sub); shortest(r) > shortest(best) {
				best = r
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			r := required(sub)
			if r == nil {
				return nil
			}
			all = append(all, r...)
		}
		return all
	}
	return nil
}

// shortest returns the length of the shortest text, or 0 without texts.
func shortest(texts []string) int {
	n := 0
	for i, t := range texts {
		if i == 0 || len(t) < n {
			n = len(t)
		}
	}
	return n
}
