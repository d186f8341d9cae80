package main

import (
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/app/catalogue"
	"builder/internal/app/complete"
	"builder/internal/app/syntax"
	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/files/inspect"
	"builder/internal/gates/gate"
	"builder/internal/view/term"
)

// operands maps a verb to its possible operands.
var operands = map[string]syntax.Takes{
	"gate":            {CellPlaces: true, Files: true},
	"verify":          {CellPlaces: true, Files: true},
	"publish":         {CellPlaces: true, Files: true},
	"diagnose":        {CellPlaces: true, Files: true},
	"publish promote": {Cells: true},
	"publish yank":    {Cells: true},
	"publish list":    {Cells: true},
	"debug shell":     {Cells: true},
	"logs":            {Cells: true},
	"report merge":    {Directories: true},
	"init":            {Directories: true},
	"key new":         {Files: true},
	"store import":    {Files: true},
	"config schema":   {Words: schemaNames()},
	"completion":      {Words: complete.Shells},
}

// flagWords maps a flag to its possible values, in addition to those in its
// placeholder.
var flagWords = map[string][]string{
	"matrix --format":       matrixFormats,
	"report merge --format": reportFormats,
	"gate --only":           gate.Names(),
	"gate --expect":         assignments(inspect.Names()),
	"verify --policy":       attest.Policies(),
	"publish --channel":     attest.Policies(),
	"publish promote --to":  attest.Policies(),
	"--gpus":                {"all"},
	"--engine":              engineAddresses(),
	"--set":                 {"source."},
}

func assignments(names []string) []string {
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = name + "="
	}
	return words
}

func engineAddresses() []string {
	words := make([]string, len(app.EngineKinds))
	for i, kind := range app.EngineKinds {
		words[i] = kind + "://"
	}
	return words
}

// completeCommand answers the completion scripts. It reads the catalogue and run.json
// and ignores all errors: a shell cannot show them.
func completeCommand(cat catalogue.Catalogue, out term.Printer) *cli.Command {
	return &cli.Command{
		Name: complete.Verb, Usage: "print the possible next words of a command line", ArgsUsage: "WORD…", Hidden: true, HideHelp: true, SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			tool := syntaxOf(c.App)
			complete.NameRecipes(&tool, cat.Names())
			return complete.Line(tool, c.Args().Slice(), complete.LastCells(resultsDir())).Write(out.Stdout)
		},
	}
}

// resultsDir returns the output directory of run without --out.
func resultsDir() string {
	if dir := os.Getenv("BUILDER_OUT"); dir != "" {
		return dir
	}
	return "out"
}

func completionCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print the completion script of a shell, or man pages", ArgsUsage: strings.Join(complete.Shells, "|"), OnUsageError: usageError,
		Description: "The script completes verbs, flags, recipes, axes and their values, and the cells of\n" +
			"./out. It calls the tool, which only reads files and uses no network.\n\n" +
			"   bash: eval \"$(builder completion bash)\" in ~/.bashrc\n" +
			"   zsh:  eval \"$(builder completion zsh)\" behind compinit in ~/.zshrc\n" +
			"   fish: builder completion fish > ~/.config/fish/completions/builder.fish",
		HideHelpCommand: true, Subcommands: []*cli.Command{manCommand(out)},
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return diag.Errorf(diag.Usage, "%s: name a shell", c.Command.HelpName).WithHint("known: %s", strings.Join(complete.Shells, ", "))
			}
			if err := unexpected(c, 1); err != nil {
				return err
			}
			shell := c.Args().First()
			if !slices.Contains(complete.Shells, shell) {
				return diag.Errorf(diag.Usage, "no completion for shell %q", shell).WithHint("%s", diag.DidYouMean(shell, complete.Shells))
			}
			script, err := complete.Script(shell)
			if err != nil {
				return err
			}
			_, err = out.Stdout.Write([]byte(script))
			return err
		},
	}
}
