// Package syntax is the command line as a value: verbs below verbs, their flags,
// what may stand behind them, examples and exit codes. Help, completion, man pages
// and reference are views of this one value, so that none of them can know less
// than the others.
package syntax

import (
	"slices"
	"strings"
)

// A Verb is the tool itself, or one of its words.
type Verb struct {
	Name     string
	Group    string // the heading under which help lists a verb of the tool
	Summary  string // one line, without a period
	Operands string // what stands behind the flags, as in usage: PATH…
	About    string // paragraphs; lines that are indented are shown as they are
	Flags    []Flag
	Takes    Takes // what an operand may be
	Examples []Example
	Exits    []Exit
	Verbs    []Verb
	// Recipe says that the verb is the name of a recipe or a profile. All of one verb
	// differ in their axes only.
	Recipe bool
}

// A Flag is an option of a verb.
type Flag struct {
	Names    []string // without dashes, the one to be shown first
	Value    string   // what its value is called, "" if it takes none
	About    string
	Default  string
	Variable string // the environment variable that is read in its place, or ""
	Repeats  bool   // it may stand there several times
	List     bool   // its value is a list a,b
	Axis     bool   // it is an axis of a recipe
	Takes    Takes
}

// Takes says what a value may be.
type Takes struct {
	Words       []string // known words, not all of them where Files is set too
	Files       bool
	Directories bool
	Cells       bool // ids of cells
	CellPlaces  bool // directories of cells, as in out/<cell>
}

// An Example is a command line that a user can copy.
type Example struct {
	Line string
	Does string // what it is for
}

// An Exit is an exit code of a verb.
type Exit struct {
	Code  int
	Means string
}

// Find returns the verb that the words name, and whether there is one.
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

// Flag returns the flag of a name, and whether there is one.
func (v Verb) Flag(name string) (Flag, bool) {
	i := slices.IndexFunc(v.Flags, func(f Flag) bool { return slices.Contains(f.Names, name) })
	if i < 0 {
		return Flag{}, false
	}
	return v.Flags[i], true
}

// Own are the verbs below that are no recipes.
func (v Verb) Own() []Verb {
	return slices.DeleteFunc(slices.Clone(v.Verbs), func(below Verb) bool { return below.Recipe })
}

// Options are the flags that a user of the verb can write: those of its recipes
// too, without axes, which differ from one to the next.
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

// Walk visits a verb and all below it that are no recipes, each with the words
// that lead to it, the first of which is the tool.
func (v Verb) Walk(visit func(words []string, v Verb)) { v.walk(nil, visit) }

func (v Verb) walk(above []string, visit func([]string, Verb)) {
	words := append(slices.Clone(above), v.Name)
	visit(words, v)
	for _, below := range v.Own() {
		below.walk(words, visit)
	}
}

// Spelling is a flag as it is typed, with what its value is called.
func (f Flag) Spelling() string {
	dashed := make([]string, len(f.Names))
	for i, name := range f.Names {
		dashed[i] = Dashed(name)
	}
	return strings.TrimSpace(strings.Join(dashed, ", ") + " " + f.Value)
}

// Dashed is a flag's name as it is typed.
func Dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
