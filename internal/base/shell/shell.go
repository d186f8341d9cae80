// Package shell writes words as a POSIX shell takes them. It runs none.
package shell

import (
	"regexp"
	"strings"
)

// Quote makes one word of any text.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

var name = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Name reports whether a text can be the name of a variable.
func Name(text string) bool { return name.MatchString(text) }

var plain = regexp.MustCompile(`^[A-Za-z0-9_./,:@%+=-]+$`)

// Plain reports whether a shell takes a text as it is.
func Plain(text string) bool { return plain.MatchString(text) }

// Word quotes what a shell would take apart.
func Word(text string) string {
	if Plain(text) {
		return text
	}
	return Quote(text)
}

// Line writes words as one command line.
func Line(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Word(word)
	}
	return strings.Join(quoted, " ")
}
