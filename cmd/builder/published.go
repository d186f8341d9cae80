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
		Name: "list", Usage: "list the wheels at a destination", ArgsUsage: "--at PLACE [WORD…]",
		Description: "Words filter the list: the cell's id, a value of an axis or a channel must contain each\n" +
			"of them. The list is unverified data of the destination: builder verify checks a wheel.",
		Flags: publishedFlags(), OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error { return doListPublished(c, out) },
	}
}

func publishedFlags() []cli.Flag {
	return []cli.Flag{jsonFlag(), insecureFlag(), &cli.StringFlag{Name: "at", Usage: "list `PLACE`: " + publish.Sources}}
}

func doListPublished(c *cli.Context, out term.Printer) error {
	at, err := publish.OpenSource(c.String("at"), c.Bool("insecure"), nil)
	if err != nil {
		return diag.Errorf(diag.Usage, "--at: %w", err)
	}
	all, err := publish.Listed(c.Context, at, c.Args().Slice())
	if err != nil {
		return err
	}
	return show.PublishedCells(out, all, c.Bool("json"))
}
