package complete

import (
	"embed"
	"fmt"
	"io"
	"strings"
)

//go:embed scripts
var scripts embed.FS

// Shells are those that there is a script for.
var Shells = []string{"bash", "zsh", "fish"}

// Verb is the hidden verb of the tool that the scripts call. Behind it stand the
// words of the command line; it prints an [Answer] and never anything else.
const Verb = "__complete"

// Script returns the script of one of the [Shells].
func Script(shell string) (string, error) {
	text, err := scripts.ReadFile("scripts/" + shell)
	return string(text), err
}

// Write prints an answer as the scripts read it: a line that says what the shell
// adds, then a word a line, with what it means behind a tab.
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
