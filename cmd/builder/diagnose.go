package main

import (
	"errors"
	"os"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/judge"
	"builder/internal/plan/catalogue"
	"builder/internal/view/term"
)

const diagnoseDescription = `Reads the log of a build or of a job and prints each known failure in it: the place, the
cause and the remedy. A directory means the logs of the cells in it, - means standard
input. Logs may be of any size.

A finding is a result, so the exit code is 0 with or without findings. An unreadable
file is exit 2.`

func diagnoseCommand(cat catalogue.Catalogue, out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "diagnose", Usage: "find known failures in the log of a build or job", ArgsUsage: "FILE… | DIR | -",
		Description: diagnoseDescription,
		Flags:       []cli.Flag{recipesFlag(), jsonFlag()},
		Action: func(c *cli.Context) error {
			files, err := judge.Diagnosable(c.Args().Slice())
			if err != nil {
				return err
			}
			reports, err := judge.Diagnose(c.Context, cat, files, os.Stdin)
			return errors.Join(err, out.Print(c.Bool("json"), judge.DiagnosedJSON(reports), func() { show.Diagnosed(out, reports) }))
		},
	}
}
