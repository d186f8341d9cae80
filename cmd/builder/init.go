package main

import (
	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/base/diag"
	"builder/internal/view/term"
)

func initCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "init", Usage: "make a directory for a site's own recipes, stacks, patches, images, diagnoses and profiles", ArgsUsage: "DIR",
		Description: "Makes DIR/recipes, DIR/stacks, DIR/patches, DIR/images, DIR/diagnoses and\nDIR/profiles, with schemas for editors. --recipe copies the built-in recipe, its lock\nand its patches for you to change, or a stack (stack/NAME) with its lock; DIR can then\nbe a site that exists. A file replaces the built-in one of the same name\nif `--recipes DIR` or BUILDER_RECIPES names the directory. No file is overwritten.",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "recipe", Usage: "copy the built-in recipe or stack `NAME`, with its lock and its patches"},
		},
		OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return diag.Errorf(diag.Usage, "init needs one directory, got %d", c.NArg()).WithHint("builder init DIR")
			}
			written, err := app.NewSite(c.Args().First(), c.StringSlice("recipe"))
			for _, path := range written {
				out.Say("%s", path)
			}
			return err
		},
	}
}
