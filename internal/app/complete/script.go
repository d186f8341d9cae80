package complete

import (
	"embed"
	"fmt"
	"io"
	"strings"
)

//go:embed scripts
var scripts embed.FS

// Shells are the shells with a completion script.
var Shells = []string{"bash", "zsh", "fish"}

// Verb is the hidden verb called by the scripts. Its operands are the words of the
// command line. It prints an [Answer] and nothing else.
const Verb = "__complete"

// Script returns the completion script of one of [Shells].
func Script(shell string) (string, error) {
	text, err := scripts.ReadFile("scripts/" + shell)
	return string(text), err
}

// Write prints an answer in the format of the scripts: one line with the kind of paths
// that the shell adds, then one line per word with its description after a tab.
func (a Answer) Write(w io.Writer) error {
	var b strings.Builder
	switch {
	case a.Files:
		b.WriteString("files\n")
	case a.Directories:
		b.WriteString("directories\n")
	default:
		b.WriteString("words\n")
	}
	for _, word := range a.Words {
		if about := strings.Join(strings.Fields(word.About), " "); about != "" {
			fmt.Fprintf(&b, "%s\t%s\n", word.Text, about)
		} else {
			fmt.Fprintln(&b, word.Text)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
