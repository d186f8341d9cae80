package main

import (
	"errors"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/build"
	"builder/internal/app/home"
	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/gates/gate"
	"builder/internal/plan/catalogue"
	"builder/internal/publishing/publish"
	"builder/internal/view/report"
	"builder/internal/view/term"
)

func runCommand(cat catalogue.Catalogue, err error, out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "run", Usage: "build, gate and keep the chosen cells of a recipe", ArgsUsage: "RECIPE [axes]",
		Description: "DIR/<cell>/ holds the wheel, its verdicts and the logs of every step. The result of\nthe run is in DIR/run.json, as a page in DIR/report.html, and for CI servers in\nDIR/junit.xml. The exit code is 0 only if every cell passed every gate.\n\nThe flags of a recipe are its axes and the options of a run: see builder run RECIPE --help.",
		Flags:       []cli.Flag{recipesFlag()},
		Action:      unknownRecipe(cat, err),
		Subcommands: recipeCommands(cat, err, append(selectionFlags(), runFlags()...), func(c *cli.Context, of plan.Selection) error {
			in, err := readInvocation(c, cat, out)
			r, err2 := readRun(c, of)
			if err := in.begin(c.Context, err, err2); err != nil {
				return err
			}
			done, err := build.Run(c.Context, in.Setup, r)
			return printEnd(c, in, done, err, func(out term.Printer, done report.Run) { show.Run(out, done, r.Out) })
		}),
	}
}

// levels are the values of --tests, the amount of upstream's tests to run. needsOf maps
// each to the requirement of its gates.
var levels, needsOf = []string{"none", "quick", "full"}, map[string]gate.Need{"": gate.Container, "none": gate.Container, "quick": gate.Tests, "full": gate.Long}

func readRun(c *cli.Context, of plan.Selection) (build.RunRequest, error) {
	r := build.RunRequest{
		Selection: of, Out: c.String("out"), FailFast: c.Bool("fail-fast"), Most: needsOf[c.String("tests")], Rebuild: c.Bool("rebuild"), FromOnly: c.Bool("from-only"),
		Accept: slices.DeleteFunc(c.StringSlice("accept"), func(name string) bool { return name == "" }), // an empty variable names none
	}
	var errs []error
	if level := c.String("tests"); level != "" && !slices.Contains(levels, level) {
		errs = append(errs, diag.Errorf(diag.Usage, "--tests: unknown level %q", level).WithHint("%s", diag.DidYouMean(level, levels)))
	}
	for _, place := range c.StringSlice("from") {
		if place == "" && os.Getenv("BUILDER_FROM") == "" {
			continue // an empty variable means the default
		}
		if _, err := publish.Open[publish.Source](place, publish.Options{}); err != nil {
			errs = append(errs, diag.Errorf(diag.Usage, "--from: %w", err))
		}
		r.From = append(r.From, place)
	}
	if r.FromOnly && len(r.From) == 0 {
		errs = append(errs, diag.Errorf(diag.Usage, "--from-only has no effect without --from").
			WithHint("name a place with --from (%s), or leave out --from-only to build", publish.Syntax[publish.Source]()))
	}
	return r, errors.Join(append(errs, home.CheckDir("--out", r.Out))...)
}
