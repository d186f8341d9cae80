package main

import (
	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/host"
	"builder/internal/app/plan"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/matrix"
	"builder/internal/view/term"
)

const doctorDescription = `Checks the engine and its needs, the disk, GPUs and their drivers,
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
		engineFlag("check the Dagger engine at `URL`"),
		noInstallFlag(),
	}
}

func doctorCommand(cat catalogue.Catalogue, err error, out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "check whether this host can build and run", ArgsUsage: "[RECIPE [axes]]", Description: doctorDescription,
		Flags: doctorFlags(),
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownRecipe(cat, err)(c)
			}
			return examineHost(c, cat, plan.Selection{Filter: matrix.Filter{}}, out)
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
	return printResult(c, out, report, err, show.Doctor)
}
