package main

import (
	"errors"
	"os"

	"github.com/urfave/cli/v2"

	"builder/internal/diag"
	"builder/internal/index"
	"builder/internal/publish"
)

func promoteCommand(out printer) *cli.Command {
	return &cli.Command{
		Name: "promote", Usage: "put a published wheel into another channel, if its verdicts allow that", ArgsUsage: "CELL --at file:DIR --to stable",
		Description: "CELL is the id or the key of a published cell. Its statements are verified where they\n" +
			"lie, by the policy of the channel; nothing is built and no byte changes.",
		Flags: promoteFlags(), OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error { return doPromote(c, out) },
	}
}

func promoteFlags() []cli.Flag {
	return []cli.Flag{
		jsonFlag(),
		trustFlag(),
		&cli.StringFlag{Name: "at", Usage: "the index: `DEST` as in file:DIR"},
		&cli.StringFlag{Name: "to", Value: "stable", Usage: "promote to `CHANNEL`: candidate or stable"},
	}
}

func doPromote(c *cli.Context, out printer) error {
	dir, err1 := indexAt(c)
	channel, err2 := publish.FindChannel(c.String("to"))
	home, err3 := homeDir()
	if c.Args().Len() != 1 {
		err1 = errors.Join(err1, diag.Errorf(diag.Usage, "%s: name one cell", c.Command.HelpName).WithHint("builder index --at DEST lists them"))
	}
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	trust, err := trusted(c.StringSlice("trust"), home)
	if err != nil {
		return err
	}
	x, r, err := findPublished(dir, c.Args().First())
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "builder-promote-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	wheel, err := x.Take(c.Context, r, scratch)
	if err != nil {
		return diag.Errorf(diag.Publish, "%w", err)
	}
	b, err := publish.Load(wheel.Path, trust, channel.Policy)
	if err != nil {
		return err
	}
	receipt, err := publish.Directory{Dir: dir}.Put(c.Context, b, channel.Name)
	if err != nil {
		return err
	}
	return printPublished(publishReport{Schema: 1, To: "file:" + dir, Published: []publish.Receipt{receipt}}, c.Bool("json"), out)
}

// findPublished returns the record of a cell by its id or key.
func findPublished(dir, name string) (*index.Index, index.Record, error) {
	x := index.Open(dir)
	all, err := x.All()
	if err != nil {
		return nil, index.Record{}, err
	}
	var ids []string
	for _, r := range all {
		if r.Cell == name || r.Key == name {
			return x, r, nil
		}
		ids = append(ids, r.Cell)
	}
	return nil, index.Record{}, diag.Errorf(diag.Usage, "no published cell is called %q", name).WithHint("%s", diag.DidYouMean(name, ids))
}
