package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/diag"
	"builder/internal/index"
	"builder/internal/publish"
	"builder/internal/term"
)

func indexCommand(out printer) *cli.Command {
	return &cli.Command{
		Name: "index", Usage: "list what a destination holds", ArgsUsage: "--at file:DIR [WORD…]",
		Description: "Words narrow the list: every one has to be in the cell's id, in a value of an axis or in a channel.",
		Flags:       indexFlags(), OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			dir, err := indexAt(c)
			if err != nil {
				return err
			}
			all, err := index.Open(dir).All()
			if err != nil {
				return err
			}
			return printIndex(matching(all, c.Args().Slice()), c.Bool("json"), out)
		},
	}
}

func indexFlags() []cli.Flag {
	return []cli.Flag{jsonFlag(), &cli.StringFlag{Name: "at", Usage: "the index: `DEST` as in file:DIR"}}
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
		refused := 0
		for _, status := range r.Gates {
			if status != "pass" {
				refused++
			}
		}
		rows = append(rows, []string{r.Cell, strings.Join(r.Channels, ", "), fmt.Sprintf("%d of %d", len(r.Gates)-refused, len(r.Gates)), r.Published.Format("2006-01-02"), r.Filename})
	}
	term.Table(out.stdout, term.Width(out.stdout), []string{"cell", "channels", "gates", "published", "wheel"}, rows)
	return nil
}

// indexAt reads the directory of --at.
func indexAt(c *cli.Context) (string, error) {
	dir, err := publish.DirectoryOf(c.String("at"))
	if err != nil {
		return "", diag.Errorf(diag.Usage, "--at: %w", err)
	}
	if _, err := os.Stat(dir); err != nil {
		return "", diag.Errorf(diag.Usage, "--at: %w", err)
	}
	return dir, nil
}
