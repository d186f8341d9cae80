package main

import (
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/view/term"
)

//go:embed completion
var completionScripts embed.FS

var shells = []string{"bash", "zsh", "fish"}

func completionCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print the completion script of a shell", ArgsUsage: strings.Join(shells, "|"),
		Description: "The script completes verbs, flags, recipes, axes and their values, and files. It\n" +
			"calls the tool, which only reads files and uses no network.\n\n" +
			"   bash: eval \"$(builder config completion bash)\" in ~/.bashrc\n" +
			"   zsh:  eval \"$(builder config completion zsh)\" behind compinit in ~/.zshrc\n" +
			"   fish: builder config completion fish > ~/.config/fish/completions/builder.fish",
		Action: func(c *cli.Context) error {
			if err := unexpected(c, 1); err != nil {
				return err
			}
			if !slices.Contains(shells, c.Args().First()) {
				return diag.Errorf(diag.Usage, "no completion for shell %q", c.Args().First()).WithHint("%s", diag.DidYouMean(c.Args().First(), shells))
			}
			script, err := completionScripts.ReadFile("completion/" + c.Args().First())
			if err != nil {
				return err
			}
			_, err = out.Stdout.Write(script)
			return err
		},
	}
}

// completing reports whether a completion script asks for the next words: its last word
// is a flag of package cli.
func completing(args []string) bool {
	return args[len(args)-1] == "--generate-bash-completion"
}

// complete makes the tool complete the last word of a command line.
func complete(tool *cli.App, args, recipes []string, out io.Writer) {
	tool.EnableBashCompletion, tool.BashComplete = true, suggest(args, recipes, out)
	completeWith(tool.BashComplete, tool.Commands)
}

// completeWith gives all verbs their completion.
func completeWith(complete cli.BashCompleteFunc, verbs []*cli.Command) {
	for _, verb := range verbs {
		verb.BashComplete = complete
		completeWith(complete, verb.Subcommands)
	}
}

// suggest returns the completion of every verb. Package cli prints verbs and flags. This
// function adds the values of flags, and operands. Without an answer the shell completes
// files.
func suggest(args, recipes []string, out io.Writer) cli.BashCompleteFunc {
	words := append([]string{""}, args[1:len(args)-1]...)
	before := ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
	return func(c *cli.Context) {
		f := flagNamed(c.Command.Flags, strings.TrimLeft(before, "-"))
		if strings.HasPrefix(before, "-") && f != nil && f.TakesValue() {
			fmt.Fprint(out, lines(valuesOf(f)))
			return
		}
		if len(c.Command.Subcommands) > 0 && c.NArg() > 1 {
			return // an operand, or no verb, recipe or profile
		}
		cli.DefaultCompleteWithFlags(c.Command)(c)
		if len(c.Command.Subcommands) > 0 || strings.HasPrefix(words[len(words)-1], "-") {
			return
		}
		if takesNames(c.Command) {
			fmt.Fprint(out, lines(recipes))
		}
		fmt.Fprint(out, lines(choicesIn(c.Command.ArgsUsage)))
	}
}

// valuesOf returns the known values of a flag: those of an axis, or those that its
// placeholder lists.
func valuesOf(f cli.DocGenerationFlag) []string {
	if axis, ok := axisOf(f); ok {
		return append(slices.Clone(axis.known), "all")
	}
	_, placeholder, _ := strings.Cut(f.GetUsage(), "`")
	placeholder, _, _ = strings.Cut(placeholder, "`")
	return choicesIn(placeholder)
}

// choicesIn returns the values that a placeholder such as images|uv lists: its words in
// lower case.
func choicesIn(placeholder string) []string {
	return slices.DeleteFunc(strings.Split(placeholder, "|"), func(word string) bool {
		return word != strings.ToLower(word) || strings.ContainsAny(word, "/-[ ")
	})
}

func lines(words []string) string {
	return strings.Join(append(words, ""), "\n")
}
