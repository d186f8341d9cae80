package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/base/diag"
	"builder/internal/publishing/index"
	"builder/internal/publishing/publish"
)

func publishedCommand(out printer) *cli.Command {
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

func doListPublished(c *cli.Context, out printer) error {
	at, err := publish.OpenSource(c.String("at"), c.Bool("insecure"), nil)
	if err != nil {
		return diag.Errorf(diag.Usage, "--at: %w", err)
	}
	all, err := app.Listed(c.Context, at, c.Args().Slice())
	if err != nil {
		return err
	}
	return printPublishedCells(all, c.Bool("json"), out)
}

func printPublishedCells(all []index.Record, asJSON bool, out printer) error {
	if asJSON {
		return printJSON(out, map[string]any{"schema": 1, "wheels": all})
	}
	var rows [][]string
	for _, r := range all {
		state := strings.Join(r.Channels, ", ")
		if r.Yanked != "" {
			state += ", yanked"
		}
		rows = append(rows, []string{r.Cell, state, r.Passed(), r.Published.Format("2006-01-02"), r.Filename})
	}
	out.table([]string{"cell", "channels", "gates", "published", "wheel"}, rows)
	return nil
}
