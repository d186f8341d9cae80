package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/publishing/publish"
)

func promoteCommand(out printer) *cli.Command {
	return &cli.Command{
		Name: "promote", Usage: "put a published wheel into another channel, if its verdicts allow that", ArgsUsage: "CELL --at DEST --to stable",
		Description: "CELL is the id or the key of a published cell. Its statements are taken from where\n" +
			"they lie and verified by the policy of the channel; nothing is built and no byte\n" +
			"changes.",
		Flags: promoteFlags(), OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error { return doPromote(c, out) },
	}
}

func promoteFlags() []cli.Flag {
	return append(catalogueFlags(),
		jsonFlag(),
		trustFlag(),
		&cli.StringFlag{Name: "to", Value: "stable", Usage: "promote to `CHANNEL`: candidate or stable"},
	)
}

func doPromote(c *cli.Context, out printer) error {
	at, cell, err1 := publishedCell(c)
	channel, err2 := publish.Channel(c.String("to"))
	if err2 != nil {
		err2 = placeFault("to", c.String("to"), "to", "at", err2)
	}
	home, err3 := homeDir()
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	trust, err := trusted(c.StringSlice("trust"), home)
	if err != nil {
		return err
	}
	r, err := publish.FindCell(c.Context, at, cell)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "builder-promote-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	b, err := publish.Take(c.Context, at, r.Key, scratch, trust, channel)
	if err == nil && b.Entry.ID != cell && b.Entry.Key() != cell {
		err = fmt.Errorf("the place says that it is %s, and signed is that it is %s", cell, b.Entry.ID)
	}
	if err != nil && diag.CodeOf(err) != diag.Gate {
		err = diag.Errorf(diag.Publish, "promoting %s: %w", r.Cell, err)
	}
	if err != nil {
		return err
	}
	receipt, err := at.Put(c.Context, b, string(channel))
	if err != nil {
		return err
	}
	return printPublished(publishReport{Schema: 1, To: at.String(), Published: []publish.Receipt{receipt}}, c.Bool("json"), out)
}

// catalogueFlags name a place and how to speak with it.
func catalogueFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "at", Usage: "where it is published: `DEST` is file:DIR or oci://HOST/REPOSITORY"},
		insecureFlag(),
	}
}

// publishedCell reads the place and the one cell that a command is about.
func publishedCell(c *cli.Context) (at publish.Catalogue, cell string, err error) {
	if c.Args().Len() != 1 {
		err = diag.Errorf(diag.Usage, "%s: name one cell", c.Command.HelpName).WithHint("builder index --at DEST lists them")
	}
	at, fault := publish.OpenCatalogue(c.String("at"), c.Bool("insecure"))
	if fault != nil {
		err = errors.Join(err, placeFault("at", c.String("at"), "to", "at", fault))
	}
	return at, c.Args().First(), err
}
