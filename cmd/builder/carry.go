package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/host"
	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/base/size"
	"builder/internal/plan/catalogue"
	"builder/internal/view/term"
)

func exportCommand(cat catalogue.Catalogue, err error, out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "export", Usage: "write all inputs of the chosen cells for a machine without a network", ArgsUsage: "RECIPE [axes]",
		Description: "Fetches missing inputs into the store first. On the other machine, with the same\nbuilder, recipes and locks: `builder store import`, then\n`builder run RECIPE --offline --locked`.",
		Flags:       []cli.Flag{recipesFlag()}, OnUsageError: usageError, HideHelpCommand: true,
		Action: unknownRecipe(cat, err),
		Subcommands: recipeCommands(cat, err, exportFlags(), func(c *cli.Context, of plan.Selection) error {
			in, err := readInvocation(c, cat, out)
			if err != nil {
				return err
			}
			r := host.ExportRequest{Selection: of, To: c.String("to"), Without: c.StringSlice("without")}
			index, err := host.Export(c.Context, in.host(), r)
			if err != nil {
				return err
			}
			return show.Export(out, r.To, index, c.Bool("json"))
		}),
	}
}

func exportFlags() []cli.Flag {
	return append(selectionFlags(), noInstallFlag(), keyFlag(),
		&cli.StringFlag{Name: "to", Usage: "write the tar file `FILE`, which must not exist"},
		&cli.StringSliceFlag{Name: "without", Usage: "leave out `images|uv|results`, which the other machine may have already (uv: also bubblewrap); repeatable"},
	)
}

func importFlags() []cli.Flag { return []cli.Flag{recipesFlag(), jsonFlag(), trustFlag()} }

func importCommand(cat catalogue.Catalogue, err error, out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "import", Usage: "read an export of another machine, and list the cells that it completes", ArgsUsage: "FILE…",
		OnUsageError: usageError,
		Flags:        importFlags(),
		Action: func(c *cli.Context) error {
			if err != nil {
				return err
			}
			if !c.Args().Present() {
				return diag.Errorf(diag.Usage, "%s: name a file", c.Command.HelpName)
			}
			in, err := readInvocation(c, cat, out)
			if err != nil {
				return err
			}
			in.Sources.Offline = true
			took, err := host.Import(c.Context, in.host(), c.Args().Slice())
			if took.Cells == nil {
				return err
			}
			return errors.Join(err, out.Print(c.Bool("json"), took, func() {
				for _, c := range took.Cells {
					out.Say("%s: %s", c.ID, c.State)
				}
				out.Say("imported %d files, %s, %d results; the store already had %d files", took.Files, size.Text(took.Bytes), took.Results, took.Known)
			}))
		},
	}
}
