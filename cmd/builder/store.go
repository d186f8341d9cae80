package main

import (
	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/host"
	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/plan/catalogue"
	"builder/internal/view/term"
)

func storeCommand(cat catalogue.Catalogue, err error, out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "store", Usage: "export, import, clean and verify the inputs of builds",
		Subcommands: []*cli.Command{
			exportCommand(cat, err, out),
			importCommand(out),
			{
				Name: "gc", Usage: "free disk space: empty the engine's cache and shrink the store",
				Description: "Empties the cache of the engine started by builder. The next builds fill it again\nfrom the store. Removes from the store the files unused for the longest time.\nRemoves the scratch files, and keeps clones of repositories.\nWaits until no other builder uses the store.",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "keep", Value: "10%", Usage: "shrink the store to at most `SIZE`, such as 50GB or 0, or a share of the disk"},
					&cli.BoolFlag{Name: "dry-run", Usage: "list the removals, and remove nothing"},
					jsonFlag(),
				},
				Action: onHost(out, func(c *cli.Context, s host.Setup) error {
					r := host.CollectRequest{Keep: c.String("keep"), DryRun: c.Bool("dry-run")}
					done, err := host.Collect(c.Context, s, r)
					return printResult(c, out, done, err, func(out term.Printer, done host.Collected) { show.Collected(out, done, r) })
				}),
			},
			{
				Name: "verify", Usage: "read every file and remove damaged ones: exit 8 if there are any",
				Flags: []cli.Flag{jsonFlag()},
				Action: onHost(out, func(c *cli.Context, s host.Setup) error {
					read, err := host.VerifyStore(c.Context, s)
					return printResult(c, out, read, err, show.Checked)
				}),
			},
		},
	}
}

func exportCommand(cat catalogue.Catalogue, err error, out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "export", Usage: "write all inputs of the chosen cells for a machine without a network", ArgsUsage: "RECIPE [axes]",
		Description: "Fetches missing inputs into the store first. On the other machine, with the same\nbuilder, recipes and locks: `builder store import`, then\n`builder run RECIPE --offline --locked`.",
		Flags:       []cli.Flag{recipesFlag()},
		Action:      unknownRecipe(cat, err),
		Subcommands: recipeCommands(cat, err, exportFlags(), func(c *cli.Context, of plan.Selection) error {
			in, err := readInvocation(c, cat, out)
			if err != nil {
				return err
			}
			r := host.ExportRequest{Selection: of, To: c.String("to"), Without: c.StringSlice("without")}
			done, err := host.Export(c.Context, in.host(), r)
			return printResult(c, out, done, err, show.Export)
		}),
	}
}

func exportFlags() []cli.Flag {
	return append(selectionFlags(), noInstallFlag(),
		&cli.StringFlag{Name: "to", Usage: "write the tar file `FILE`, which must not exist"},
		&cli.StringSliceFlag{Name: "without", Usage: "leave out `images|uv`, which the other machine may have already (uv: also bubblewrap); repeatable"},
	)
}

func importCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "import", Usage: "read an export of another machine into the store", ArgsUsage: "FILE…",
		Flags: []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return diag.Errorf(diag.Usage, "%s: name a file", c.Command.HelpName)
			}
			in, err := readInvocation(c, catalogue.Catalogue{}, out)
			if err != nil {
				return err
			}
			took, err := host.Import(c.Context, in.host(), c.Args().Slice())
			return printResult(c, out, took, err, show.Imported)
		},
	}
}
