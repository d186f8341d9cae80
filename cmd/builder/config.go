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
		Name: "init", Usage: "make a directory for a site's own recipes, stacks, patches, images, diagnoses and profiles", ArgsUsage: "DIR [RECIPE…]",
		Description: "Makes DIR/recipes, DIR/stacks, DIR/patches, DIR/images, DIR/diagnoses and\nDIR/profiles, with schemas for editors. Copies each built-in RECIPE with its lock and its\npatches for you to change, or a stack (stack/NAME) with its lock; DIR can then be a\nsite that exists. A file replaces the built-in one of the same name\nif `--recipes DIR` or BUILDER_RECIPES names the directory. No file is overwritten.",
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
