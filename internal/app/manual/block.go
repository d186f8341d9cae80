// Package manual writes the command line as text that people read: man pages in
// roff, and a reference in Markdown.
package manual

import (
	"fmt"
	"slices"
	"strings"

	"builder/internal/app/syntax"
)

// block is a paragraph, or lines that are shown as they are.
type block struct {
	lines   []string
	literal bool
}

// blocksOf takes a text apart. Lines that are indented, and empty lines between
// them, are literal.
func blocksOf(text string) []block {
	var blocks []block
	open := false // a line joins the last block
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" {
			open = false
			continue
		}
		literal := strings.HasPrefix(line, "  ")
		last := len(blocks) - 1
		switch {
		case last >= 0 && literal && blocks[last].literal:
			if !open {
				blocks[last].lines = append(blocks[last].lines, "")
			}
			blocks[last].lines = append(blocks[last].lines, line)
		case open && !literal && !blocks[last].literal:
			blocks[last].lines = append(blocks[last].lines, line)
		default:
			blocks = append(blocks, block{[]string{line}, literal})
		}
		open = true
	}
	for i := range blocks {
		blocks[i].outdent()
	}
	return blocks
}

// outdent takes away the spaces that all lines begin with.
func (b *block) outdent() {
	for !slices.ContainsFunc(b.lines, func(line string) bool { return line != "" && line[0] != ' ' }) {
		for i := range b.lines {
			b.lines[i] = strings.TrimPrefix(b.lines[i], " ")
		}
	}
}

// usage is how a verb is typed.
func usage(words []string, v syntax.Verb) string {
	line := strings.Join(words, " ")
	if v.Operands != "" {
		line += " " + v.Operands
	}
	if len(v.Own()) > 0 && v.Operands == "" {
		line += " COMMAND"
	}
	if len(v.Options()) > 0 {
		line += " [flags]"
	}
	return line
}

// about is a flag's text with its default and its variable.
func about(f syntax.Flag) string {
	text := f.About
	if f.Repeats && !strings.Contains(text, "repeatable") {
		text += "; repeatable"
	}
	if f.Default != "" {
		text += fmt.Sprintf(" (default: %s)", f.Default)
	}
	if f.Variable != "" {
		text += fmt.Sprintf(" [$%s]", f.Variable)
	}
	return text
}

// recipesOf are the recipes below a verb.
func recipesOf(v syntax.Verb) []syntax.Verb {
	return slices.DeleteFunc(slices.Clone(v.Verbs), func(below syntax.Verb) bool { return !below.Recipe })
}

func axesOf(v syntax.Verb) []syntax.Flag {
	return slices.DeleteFunc(slices.Clone(v.Flags), func(f syntax.Flag) bool { return !f.Axis })
}
