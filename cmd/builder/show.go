package main

import (
	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/judge"
	"builder/internal/base/diag"
	"builder/internal/plan/catalogue"
	"builder/internal/view/term"
)

func showCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show what an artifact is, its origin, and how it was tested", ArgsUsage: "PATH…",
		Description: "PATH is the directory of a cell (out/<cell>), a wheel, an archive or a library. The facts\n" +
			"come from its bytes, the origin from the signed statements beside it. The command\n" +
			"judges nothing: its exit code is 0 whatever it shows. builder gate judges the file, and\n" +
			"builder verify the statements.",
		Flags: []cli.Flag{jsonFlag(), trustFlag()},
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return diag.Errorf(diag.Usage, "%s: name the directory of a cell, a wheel or a library", c.Command.HelpName).
					WithHint("%s out/horovod-0.28.1+rocm5.7-tf2.13.0-cp311", c.Command.HelpName)
			}
			in, err := readInvocation(c, catalogue.Catalogue{}, out)
			if err != nil {
				return err
			}
			done, err := judge.Show(c.Context, in.Keys, c.Args().Slice())
			return printResult(c, out, done, err, show.Shown)
		},
	}
}
