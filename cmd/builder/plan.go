package main

import (
	"errors"
	"os"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/app/catalogue"
	"builder/internal/app/show"
	"builder/internal/base/diag"
	"builder/internal/view/term"
)

func planCommand(cat catalogue.Catalogue, err error, out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "plan", Usage: "explain a run without running it", ArgsUsage: "RECIPE [axes]",
		Flags: []cli.Flag{recipesFlag()}, OnUsageError: verbUsageError, HideHelpCommand: true,
		Action: unknownRecipe(cat, err),
		Subcommands: recipeCommands(cat, err, planFlags(), func(c *cli.Context, of app.Selection) error {
			in, err := openSession(c, cat, out)
			if err = errors.Join(err, app.CheckOut(c.String("out"))); err != nil {
				return err
			}
			if c.Bool("all") {
				of.Filter = app.OpenAxes(of.Recipe, of.Filter, true)
			}
			r := app.PlanRequest{Selection: of}
			if r.With, err = readComparison(c, of); err != nil {
				return err
			}
			p, err := app.PlanRun(c.Context, in.Session, r)
			if p.Recipe == "" {
				return err
			}
			return errors.Join(out.Print(c.Bool("json"), p, func() { show.Plan(out, p) }), err)
		}),
	}
}

func planFlags() []cli.Flag {
	return append(selectionFlags(),
		allFlag("select every value of the axes without a flag"),
		&cli.BoolFlag{Name: "diff", Usage: "print the changes since the last started run, and the steps that run again"},
		&cli.StringFlag{Name: "against", Usage: "compare with the entries of another `LOCK` instead, a file *.lock.json"},
		outFlag("find the results of the last run below `DIR`"),
		keyFlag(), // another key does not count results that this one signed
	)
}

// readComparison reads the flags for the comparison of a plan.
func readComparison(c *cli.Context, of app.Selection) (app.Comparison, error) {
	// --out set by BUILDER_OUT applies to every command and contradicts no flag.
	out := c.IsSet("out") && os.Getenv("BUILDER_OUT") == ""
	switch file := c.String("against"); {
	case c.IsSet("against") && out:
		return nil, diag.Errorf(diag.Usage, "--against names a lock and --out a run: give one of them")
	case c.IsSet("against"):
		return app.WithLock(file, of.Recipe.Name)
	case c.Bool("diff"):
		return app.WithRun(c.String("out")), nil
	case out:
		return nil, diag.Errorf(diag.Usage, "--out names the last run, and has no effect without --diff")
	}
	return nil, nil
}
