package main

import (
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/home"
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
			r := plan.Request{Selection: of}
			if r.With, err = readComparison(c, of); err != nil {
				return err
			}
			p, err := plan.Explain(c.Context, in.plan(), r)
			return printResult(c, out, p, p.Recipe != "", err, show.Plan)
		}),
	}
}

func planFlags() []cli.Flag {
	return append(selectionFlags(),
		allFlag("select every value of the axes without a flag"),
		&cli.StringFlag{Name: "since", Usage: "print the changes since the last run in `DIR|LOCK`, or since a lock, a file *.lock.json, and the steps that run again"},
		keyFlag(), // another key does not count results that this one signed
	)
}

// readComparison reads the flag for the comparison of a plan.
func readComparison(c *cli.Context, of plan.Selection) (plan.Comparison, error) {
	switch place := c.String("since"); {
	case place == "":
		return nil, nil
	case isLock(place):
		return plan.WithLock(place, of.Recipe.Name)
	default:
		return plan.WithRun(place), home.CheckOut(place)
	}
}

// isLock reports whether a place is a lock, perhaps in a pipe, and not the directory of a
// run.
func isLock(place string) bool {
	info, err := os.Stat(place)
	return strings.HasSuffix(place, ".lock.json") || err == nil && !info.IsDir()
}
