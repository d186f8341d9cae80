package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/publishing/index"
	"builder/internal/publishing/publish"
	"builder/internal/view/term"
)

func indexCommand(out printer) *cli.Command {
	return &cli.Command{
		Name: "index", Usage: "list what a destination holds", ArgsUsage: "--at PLACE [WORD…]",
		Description: "Words narrow the list: every one has to be in the cell's id, in a value of an axis or\n" +
			"in a channel. What is listed is what the place says: builder verify says whether it is\n" +
			"true.",
		Flags: indexFlags(), OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error { return doIndex(c, out) },
	}
}

func indexFlags() []cli.Flag {
	return []cli.Flag{jsonFlag(), insecureFlag(), &cli.StringFlag{Name: "at", Usage: "list `PLACE`: " + publish.Sources}}
}

func doIndex(c *cli.Context, out printer) error {
	at, err := publish.OpenSource(c.String("at"), c.Bool("insecure"), nil)
	if err != nil {
		return diag.Errorf(diag.Usage, "--at: %w", err)
	}
	all, err := at.List(c.Context)
	if err != nil {
		return err
	}
	return printIndex(matching(all, c.Args().Slice()), c.Bool("json"), out)
}

// matching keeps the records that say every word.
func matching(all []index.Record, words []string) []index.Record {
	kept := []index.Record{}
	for _, r := range all {
		text := fmt.Sprint(r.Cell, " ", r.Axes, " ", r.Channels)
		lacks := false
		for _, w := range words {
			lacks = lacks || !strings.Contains(text, w)
		}
		if !lacks {
			kept = append(kept, r)
		}
	}
	return kept
}

func printIndex(all []index.Record, asJSON bool, out printer) error {
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
	term.Table(out.stdout, term.Width(out.stdout), []string{"cell", "channels", "gates", "published", "wheel"}, rows)
	return nil
}
