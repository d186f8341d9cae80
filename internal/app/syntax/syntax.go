// Package syntax is the command line as data: verbs and subverbs, their flags,
// operands, examples and exit codes. Help, completion, man pages and the reference are
// generated from this one value, so that they cannot disagree.
package syntax

import (
	"slices"
	"strings"
)

// A Verb is the tool itself, a verb or a subverb.
type Verb struct {
	Name     string
	Group    string // the heading under which help lists a verb of the tool
	Summary  string // one line, without a period
	Operands string // operands as shown in usage: PATH…
	About    string // paragraphs; indented lines are printed unchanged
	Flags    []Flag
	Takes    Takes // possible operands
	Examples []Example
	Exits    []Exit
	Verbs    []Verb
	// Recipe is set if the verb is the name of a recipe or a profile. Such verbs below
	// one verb differ only in their axes.
	Recipe bool
}

// A Flag is an option of a verb.
type Flag struct {
	Names    []string // without dashes; the first one is shown
	Value    string   // name of its value, "" if it takes none
	About    string
	Default  string
	Variable string // environment variable that sets it, or ""
	Repeats  bool   // may occur several times
	List     bool   // its value is a list a,b
	Axis     bool   // is an axis of a recipe
	Takes    Takes
}

// Takes describes the possible values of a flag or operand.
type Takes struct {
	Words       []string // known words; with Files others are possible
	Files       bool
	Directories bool
	Cells       bool // ids of cells
	CellPlaces  bool // directories of cells, as in out/<cell>
}

// An Example is a command line to copy.
type Example struct {
	Line string
	Does string // its purpose
}

// An Exit is an exit code of a verb.
type Exit struct {
	Code  int
	Means string
}

// Find returns the verb with the given words, and whether it exists.
func (v Verb) Find(words ...string) (Verb, bool) {
	for _, word := range words {
		i := slices.IndexFunc(v.Verbs, func(below Verb) bool { return below.Name == word })
		if i < 0 {
			return Verb{}, false
		}
		v = v.Verbs[i]
	}
	return v, true
}

// Flag returns the flag with the given name, and whether it exists.
func (v Verb) Flag(name string) (Flag, bool) {
	i := slices.IndexFunc(v.Flags, func(f Flag) bool { return slices.Contains(f.Names, name) })
	if i < 0 {
		return Flag{}, false
	}
	return v.Flags[i], true
}

// Own returns the subverbs other than recipes.
func (v Verb) Own() []Verb {
	return slices.DeleteFunc(slices.Clone(v.Verbs), func(below Verb) bool { return below.Recipe })
}

// Options returns the flags of the verb and of its recipes, without axes, which differ
// between recipes.
func (v Verb) Options() []Flag {
	options := slices.Clone(v.Flags)
	for _, below := range v.Verbs {
		if !below.Recipe {
			continue
		}
		for _, f := range below.Flags {
			same := func(g Flag) bool { return g.Names[0] == f.Names[0] }
			if !f.Axis && !slices.ContainsFunc(options, same) {
				options = append(options, f)
			}
		}
	}
	return options
}

// Walk visits a verb and all subverbs other than recipes. words is the path to the verb
// and starts with the tool.
func (v Verb) Walk(visit func(words []string, v Verb)) { v.walk(nil, visit) }

func (v Verb) walk(above []string, visit func([]string, Verb)) {
	words := append(slices.Clone(above), v.Name)
	visit(words, v)
	for _, below := range v.Own() {
		below.walk(words, visit)
	}
}

// Spelling returns a flag as typed, with the name of its value.
func (f Flag) Spelling() string {
	dashed := make([]string, len(f.Names))
	for i, name := range f.Names {
		dashed[i] = Dashed(name)
	}
	return strings.TrimSpace(strings.Join(dashed, ", ") + " " + f.Value)
}

// Dashed returns a flag's name with dashes, as typed.
func Dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
