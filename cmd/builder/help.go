package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// explain adds the examples of every verb to the end of its help. The recipes below a
// verb share its examples. Only the tool has the verb help.
func explain(app *cli.App) {
	app.Description = about
	app.CustomAppHelpTemplate = cli.AppHelpTemplate + exampleSection("")
	for _, command := range app.Commands {
		explainVerb(nil, command)
	}
}

func explainVerb(above []string, c *cli.Command) {
	words := append(slices.Clone(above), c.Name)
	path := strings.Join(words, " ")
	if _, known := descriptions[path]; !known {
		path = strings.Join(above, " ") // a recipe
	}
	template := cli.CommandHelpTemplate
	if len(c.Subcommands) > 0 {
		template = cli.SubcommandHelpTemplate
	}
	c.CustomHelpTemplate, c.HideHelpCommand = template+exampleSection(path), true
	for _, below := range c.Subcommands {
		explainVerb(words, below)
	}
}

// exampleSection returns a part of a help template. It escapes {{ in texts, which the
// template would execute.
func exampleSection(path string) string {
	var b strings.Builder
	b.WriteString("\nEXAMPLES:\n")
	for _, e := range descriptions[path].Examples {
		b.WriteString("   # " + e.Does + "\n   " + e.Line + "\n")
	}
	return strings.ReplaceAll(b.String(), "{{", `{{"{{"}}`)
}
