package main

import (
	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/plan"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/ci"
	"builder/internal/view/term"
)

func planCommand(cat catalogue.Catalogue, err error, out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "plan", Usage: "explain a run without running it", ArgsUsage: "RECIPE [axes]",
		Flags:  []cli.Flag{recipesFlag()},
		Action: unknownRecipe(cat, err),
		Subcommands: recipeCommands(cat, err, planFlags(), func(c *cli.Context, of plan.Selection) error {
			in, err := readInvocation(c, cat, out)
			if err != nil {
				return err
			}
			if c.Bool("all") {
				of.Filter = ci.OpenAxes(of.Recipe, of.Filter, true)
			}
			p, err := plan.Explain(c.Context, in.plan(), of)
			err = printResult(c, out, p, err, show.Plan)
			if c.Bool("all") && len(p.Cells) > manyCells && !c.Bool("json") {
				out.Note("%d cells: `builder matrix %s --format text` with the same flags prints a line for each", len(p.Cells), p.Recipe)
			}
			return err
		}),
	}
}

// manyCells is the number of cells beyond which nobody reads the plan of each.
const manyCells = 50

func planFlags() []cli.Flag {
	return append(selectionFlags(),
		allFlag("select every value of the axes without a flag"),
		unprovenFlag(),
		keyFlag(), // another key does not count results that this one signed
	)
}
