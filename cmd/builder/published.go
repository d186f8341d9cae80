package main

import (
	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/base/diag"
	"builder/internal/publishing/publish"
	"builder/internal/view/term"
)

func publishedCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the wheels of an index", ArgsUsage: "--at PLACE",
		Description: "The list is unverified data of the index: builder verify checks a wheel.",
		Flags:       publishedFlags(), OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error { return doListPublished(c, out) },
	}
}

func publishedFlags() []cli.Flag {
	return []cli.Flag{jsonFlag(), &cli.StringFlag{Name: "at", Usage: "list `PLACE`: " + publish.Indexes}}
}

func doListPublished(c *cli.Context, out term.Printer) error {
	if err := unexpected(c, 0); err != nil {
		return err
	}
	at, err := publish.OpenIndex(c.String("at"), nil)
	if err != nil {
		return diag.Errorf(diag.Usage, "--at: %w", err)
	}
	all, err := at.List(c.Context)
	if err != nil {
		return err
	}
	return show.PublishedCells(out, all, c.Bool("json"))
}
