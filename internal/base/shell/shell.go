// Package shell quotes words for a POSIX shell. It runs no shell.
package shell

import (
	"regexp"
	"strings"
)

// Quote returns any text as one quoted word.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

var name = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Name reports whether a text is a valid name of a variable.
func Name(text string) bool { return name.MatchString(text) }

// plain matches a text that needs no quotes in a shell.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./,:@%+=-]+$`)

// Word quotes a text if necessary.
func Word(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return Quote(text)
}

// Line joins words to one command line.
func Line(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Word(word)
	}
	return strings.Join(quoted, " ")
}
