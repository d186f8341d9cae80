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
)

// operands says what may stand behind the flags of a verb.
var operands = map[string]syntax.Takes{
	"gate":            {CellPlaces: true, Files: true},
	"verify":          {CellPlaces: true, Files: true},
	"publish":         {CellPlaces: true, Files: true},
	"diagnose":        {CellPlaces: true, Files: true},
	"publish promote": {Cells: true},
	"publish yank":    {Cells: true},
	"publish list":    {Cells: true},
	"debug shell":     {Cells: true},
	"debug repro":     {Cells: true},
	"logs":            {Cells: true},
	"report merge":    {Directories: true},
	"init":            {Directories: true},
	"key new":         {Files: true},
	"store import":    {Files: true},
	"config schema":   {Words: schemaNames()},
	"completion":      {Words: complete.Shells},
}

// flagWords are the values that flags take, beside those that their placeholders
// name.
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

// completeCommand answers the scripts of completion. It reads the catalogue and
// run.json, and nothing that it meets is a fault: a shell shows no more than that
// it knows nothing.
func completeCommand(cat catalogue.Catalogue, out printer) *cli.Command {
	return &cli.Command{
		Name: complete.Verb, Usage: "what may stand next on a command line", ArgsUsage: "WORD…", Hidden: true, HideHelp: true, SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			tool := syntaxOf(c.App)
			complete.NameRecipes(&tool, cat.Names())
			return complete.Line(tool, c.Args().Slice(), complete.LastCells(resultsDir())).Write(out.stdout)
		},
	}
}

// resultsDir is where run writes its results, unless a flag says otherwise.
func resultsDir() string {
	if dir := os.Getenv("BUILDER_OUT"); dir != "" {
		return dir
	}
	return "out"
}

func completionCommand(out printer) *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print the script that completes command lines in a shell, and man pages", ArgsUsage: strings.Join(complete.Shells, "|"), OnUsageError: usageError,
		Description: "It completes verbs, flags, recipes, axes and their values, and the cells of ./out. It\n" +
			"asks the tool itself, which then reads and never writes, and reaches no network.\n\n" +
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
				return diag.Errorf(diag.Usage, "there is no completion for %q", shell).WithHint("%s", diag.DidYouMean(shell, complete.Shells))
			}
			script, err := complete.Script(shell)
			if err != nil {
				return err
			}
			_, err = out.stdout.Write([]byte(script))
			return err
		},
	}
}
