// Package manual renders the command line as documentation: man pages in roff and a
// reference in Markdown.
package manual

import (
	"fmt"
	"slices"
	"strings"

	"builder/internal/app/syntax"
)

// block is a paragraph or literal lines.
type block struct {
	lines   []string
	literal bool
}

// blocksOf splits a text into blocks. Indented lines, and empty lines between them, are
// literal.
func blocksOf(text string) []block {
	var blocks []block
	open := false // the next line continues the last block
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

// outdent removes the common indentation.
func (b *block) outdent() {
	for !slices.ContainsFunc(b.lines, func(line string) bool { return line != "" && line[0] != ' ' }) {
		for i := range b.lines {
			b.lines[i] = strings.TrimPrefix(b.lines[i], " ")
		}
	}
}

// usage returns the usage line of a verb.
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

// about returns a flag's description with its default and its variable.
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

// recipesOf returns the recipes below a verb.
func recipesOf(v syntax.Verb) []syntax.Verb {
	return slices.DeleteFunc(slices.Clone(v.Verbs), func(below syntax.Verb) bool { return !below.Recipe })
}

func axesOf(v syntax.Verb) []syntax.Flag {
	return slices.DeleteFunc(slices.Clone(v.Flags), func(f syntax.Flag) bool { return !f.Axis })
}
