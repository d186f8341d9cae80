// Package complete lists the possible next words of a command line and writes the
// completion scripts for bash, zsh and fish. Its only inputs are the command line as
// data and the ids of cells.
package complete

import (
	"slices"
	"strings"

	"builder/internal/app/syntax"
)

// A Word is a possible completion at the cursor.
type Word struct {
	Text  string
	About string // one line, or ""
}

// An Answer holds all possible completions at the cursor.
type Answer struct {
	Words       []Word
	Files       bool // the shell adds files
	Directories bool // the shell adds directories
}

// Cells are the cells of the last run, in order.
type Cells struct {
	Out string // the output directory
	IDs []string
}

// Line completes the words of a command line after the tool's name. The last word is
// the one at the cursor and may be empty.
func Line(tool syntax.Verb, words []string, cells Cells) Answer {
	if len(words) == 0 {
		words = []string{""}
	}
	last := len(words) - 1
	at := position{verb: tool}
	for _, word := range words[:last] {
		at.read(word)
	}
	return at.answer(words[last], cells)
}

// position is the parser state before the word at the cursor.
type position struct {
	verb     syntax.Verb
	operands int
	used     []string     // names of flags
	open     *syntax.Flag // the flag that awaits its value
	plain    bool         // after --
}

// read advances the state by one word.
func (p *position) read(word string) {
	switch {
	case p.open != nil:
		p.open = nil
	case p.plain:
		p.operands++
	case word == "--":
		p.plain = true
	case strings.HasPrefix(word, "-") && word != "-":
		name, _, assigned := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if f, ok := p.verb.Flag(name); ok {
			p.used = append(p.used, f.Names[0])
			if f.Value != "" && !assigned {
				p.open = &f
			}
		}
	default:
		below, ok := p.verb.Find(word)
		if !ok || p.operands > 0 {
			p.operands++
			return
		}
		p.verb, p.used = below, nil
	}
}

// answer returns the completions of word.
func (p *position) answer(word string, cells Cells) Answer {
	if p.open != nil {
		return fitting(p.open.Takes, p.open.List, "", word, cells)
	}
	if strings.HasPrefix(word, "-") && !p.plain {
		spelling, value, assigned := strings.Cut(word, "=")
		if !assigned {
			return Answer{Words: p.flags(word)}
		}
		f, ok := p.verb.Flag(strings.TrimLeft(spelling, "-"))
		if !ok || f.Value == "" {
			return Answer{}
		}
		return fitting(f.Takes, f.List, spelling+"=", value, cells)
	}
	a := fitting(p.verb.Takes, false, "", word, cells)
	if p.operands == 0 {
		a.Words = append(p.verbs(word), a.Words...)
	}
	if word == "" && len(p.verb.Verbs) == 0 && len(a.Words) == 0 && !a.Files && !a.Directories && !p.plain {
		a.Words = p.flags("") // nothing else can follow
	}
	return a
}

// verbs returns the subverbs with the given prefix.
func (p *position) verbs(begin string) []Word {
	var words []Word
	for _, below := range p.verb.Verbs {
		if strings.HasPrefix(below.Name, begin) {
			words = append(words, Word{below.Name, below.Summary})
		}
	}
	return words
}

// flags returns the flags with the given prefix, axes first. It omits flags already
// used, unless they can repeat.
func (p *position) flags(begin string) []Word {
	var axes, others []Word
	for _, f := range p.verb.Flags {
		word := Word{syntax.Dashed(f.Names[0]), f.About}
		switch {
		case !strings.HasPrefix(word.Text, begin) || slices.Contains(p.used, f.Names[0]) && !f.Repeats:
		case f.Axis:
			axes = append(axes, word)
		default:
			others = append(others, word)
		}
	}
	return append(axes, others...)
}

// fitting returns the values with the prefix word. before is the text in front of it in
// the same shell word. In a list only the last item is completed.
func fitting(takes syntax.Takes, list bool, before, word string, cells Cells) Answer {
	var there []string
	if comma := strings.LastIndex(word, ","); list && comma >= 0 {
		there = strings.Split(word[:comma], ",")
		before, word = before+word[:comma+1], word[comma+1:]
	}
	a := Answer{Files: takes.Files, Directories: takes.Directories}
	for _, value := range values(takes, cells) {
		if strings.HasPrefix(value, word) && !slices.Contains(there, value) && (len(there) == 0 || value != "all") {
			a.Words = append(a.Words, Word{Text: before + value})
		}
	}
	return a
}

func values(takes syntax.Takes, cells Cells) []string {
	all := slices.Clone(takes.Words)
	for _, id := range cells.IDs {
		if takes.Cells {
			all = append(all, id)
		}
		if takes.CellPlaces {
			all = append(all, cells.Out+"/"+id)
		}
	}
	return all
}
