package recipe

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
)

var (
	templateName = regexp.MustCompile(`\{\{[^{}]*\}\}`)
	glibcVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+(\.[0-9]+)?$`) // 2.2.5 is the first of x86-64
	// requirement follows PEP 508: a name, extras, then version clauses or an address,
	// then a marker.
	requirement = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\s*(\[[A-Za-z0-9._, -]*\])?\s*` +
		`(@\s*\S+|\(?\s*(` + clause + `(\s*,\s*` + clause + `)*\s*,?)?\s*\)?)\s*(;.*)?( from [a-z0-9][a-z0-9.-]*)?$`)
)

// clause is a version clause of a requirement, such as >=1.2.
const clause = `(===|~=|==|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+`

// validateTexts rejects values that a gate or uv would reject much later: after the
// build, or after the download of an image. A template counts as a valid word.
func (s written) validateTexts(f *decode.File) {
	e := s.Expect
	for _, list := range []struct {
		key     string
		texts   []string
		problem func(string) (why, hint string)
	}{
		{"expect.packages", e.Packages, nameProblem},
		{"expect.extensions", e.Extensions, patternProblem},
		{"requires.build", s.Requires.Build, requirementProblem},
		{"requires.run", s.Requires.Run, requirementProblem},
	} {
		for i, text := range list.texts {
			if why, hint := list.problem(templateName.ReplaceAllString(text, wildcard)); why != "" {
				f.Add(fmt.Sprintf("%s%s[%d]", s.at, list.key, i), "%s: %q is no %s", list.key, text, why).Hint = hint
			}
		}
	}
	if e.Glibc != "" && !glibcVersion.MatchString(templateName.ReplaceAllString(e.Glibc, wildcard)) {
		f.Add(s.at+"expect.glibc", "expect.glibc: %q is no version of glibc", e.Glibc).Hint = `write a version such as "2.28"`
	}
}

// wildcard replaces a template in a checked text. It is valid in all of them.
const wildcard = "0.0"

// patternHint explains the syntax of patterns.
const patternHint = "* is any name, [ab] one of the characters, and \\ precedes a character that stands for itself"

func patternProblem(text string) (why, hint string) {
	if _, err := path.Match(text, ""); err != nil {
		return "valid pattern", patternHint
	}
	return "", ""
}

// Patterns reports every text of a list in the settings of a gate that is no valid
// pattern. at is the place of the list.
func (problem Report) Patterns(at string, texts []string) {
	for i, text := range texts {
		if why, hint := patternProblem(text); why != "" {
			problem(fmt.Sprintf("%s[%d]", at, i), "%q is no %s", text, why).Hint = hint
		}
	}
}

func nameProblem(text string) (why, hint string) {
	if !strings.ContainsAny(text, "*?[") {
		return "", ""
	}
	return "name of a package", "packages takes no patterns: write the whole name, such as ujson.cpython-313-x86_64-linux-gnu.so for a module that is one file"
}

func requirementProblem(text string) (why, hint string) {
	if requirement.MatchString(text) {
		return "", ""
	}
	return "requirement of a Python package", `write a requirement such as "numpy>=1.26,<2"`
}

// A Named is a name in a recipe and its position.
type Named struct {
	Name string
	Pos  diag.Pos
}

// Images returns the names of images in the recipe and its variants, without names that
// contain templates.
func (r *Recipe) Images() []Named {
	var all []Named
	for _, s := range r.settings() {
		for _, n := range []Named{{s.Image, r.index.At(s.at + "image")}, {s.Runtime, r.index.At(s.at + "runtime")}} {
			if n.Name != "" && !templateName.MatchString(n.Name) {
				all = append(all, n)
			}
		}
	}
	return all
}
