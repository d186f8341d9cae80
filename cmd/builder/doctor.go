package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/host"
	"builder/internal/app/plan"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/internal/view/term"
)

const doctorDescription = `Checks the engine and its needs, memory and disk, GPUs and their drivers,
RDMA, topology, and installed libraries. It changes nothing and starts
nothing. It uses the network only with a recipe, or to reach an engine at tcp://.

ok, warn and fail are findings. unknown means that a check was impossible, and
gives the reason. none means that something is absent and not needed. Exit 9
if a need fails: a need of the engine or, with a recipe, of its first cell for
these axes. docs/doctor.md describes each check.`

func doctorFlags() []cli.Flag {
	return []cli.Flag{
		recipesFlag(),
		jsonFlag(),
		&cli.StringSliceFlag{Name: "engine", EnvVars: []string{"BUILDER_ENGINE"}, Usage: "check the Dagger engine at `URL`"},
		noInstallFlag(),
	}
}

func doctorCommand(cat catalogue.Catalogue, err error, out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "check whether this host can build and run", ArgsUsage: "[RECIPE [axes]]", Description: doctorDescription,
		OnUsageError: usageError, HideHelpCommand: true,
		Flags: doctorFlags(),
		Action: func(c *cli.Context) error {
			name := c.Args().First()
			if name != "" && err != nil {
				return err
			}
			if err := unexpected(c, 1); err != nil {
				return err
			}
			of := plan.Selection{Filter: matrix.Filter{}}
			if name != "" {
				r, err := recipe.Find(cat.Recipes, name)
				if err != nil {
					return err
				}
				of.Recipe = r
			}
			return examineHost(c, cat, of, out)
		},
		Subcommands: recipeCommands(cat, err, doctorFlags(), func(c *cli.Context, of plan.Selection) error {
			return examineHost(c, cat, of, out)
		}),
	}
}

// examineHost checks this host for the chosen work and prints the report.
func examineHost(c *cli.Context, cat catalogue.Catalogue, of plan.Selection, out term.Printer) error {
	in, err := readInvocation(c, cat, out)
	if err != nil {
		return err
	}
	report, err := host.Examine(c.Context, in.host(), of)
	if report.Schema == 0 {
		return err
	}
	return errors.Join(out.Print(c.Bool("json"), report, func() { show.Doctor(out, report) }), err)
}
