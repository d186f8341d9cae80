package main

import (
	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/plan/catalogue"
	"builder/internal/view/term"
)

func configCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "config", Usage: "make a site, and complete command lines",
		Subcommands: []*cli.Command{
			initCommand(out),
			completionCommand(out),
		},
	}
}

func initCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "init", Usage: "make a directory for a site's own recipes, patches, images, diagnoses and profiles", ArgsUsage: "DIR [RECIPE…]",
		Description: "Makes DIR/recipes, DIR/patches, DIR/images, DIR/diagnoses and DIR/profiles, with schemas\nfor editors. Copies each built-in RECIPE with its lock and its patches for you to change;\nDIR can then be a site that exists. A file replaces the built-in one of the same name if\n`--recipes DIR` or BUILDER_RECIPES names the directory. No file is overwritten.",
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return diag.Errorf(diag.Usage, "%s: name a directory", c.Command.HelpName)
			}
			written, err := catalogue.NewSite(c.Args().First(), c.Args().Tail())
			for _, path := range written {
				out.Say("%s", path)
			}
			return err
		},
	}
}
