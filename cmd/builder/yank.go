package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/base/diag"
	"builder/internal/publishing/publish"
)

func yankCommand(out printer) *cli.Command {
	return &cli.Command{
		Name: "yank", Usage: "say of a published wheel that nobody should take it any more", ArgsUsage: "CELL --at file:DIR --because TEXT",
		Description: "CELL is the id or the key of a published cell. It stays where it is, for those who ask\n" +
			"for its very version (PEP 592); pip and uv pass it over otherwise, and run --from does\n" +
			"not take it. --undo takes the word back. In a registry there is no such mark: let its\n" +
			"channel's tag move on by promoting another wheel.",
		Flags: yankFlags(), OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error { return doYank(c, out) },
	}
}

func yankFlags() []cli.Flag {
	return append(catalogueFlags(),
		jsonFlag(),
		&cli.StringFlag{Name: "because", Usage: "tell `TEXT` to those who ask for it"},
		&cli.BoolFlag{Name: "undo", Usage: "take the word back"},
	)
}

func doYank(c *cli.Context, out printer) error {
	at, cell, err := publishedCell(c)
	because := c.String("because")
	if (because == "") != c.Bool("undo") {
		err = errors.Join(err, diag.Errorf(diag.Usage, "%s: give either --because or --undo", c.Command.HelpName))
	}
	place, ok := at.(publish.Directory)
	if at != nil && !ok {
		err = errors.Join(err, diag.Errorf(diag.Usage, "--at: %s has no mark for it", at).WithHint("promote another wheel, so that the channel's tag moves on"))
	}
	if err != nil {
		return err
	}
	r, err := app.Yank(c.Context, place, cell, because)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(out, map[string]any{"schema": 1, "wheel": r})
	}
	state := "yanked"
	if r.Yanked == "" {
		state = "not yanked"
	}
	out.say("%s %s at %s", r.Filename, state, place)
	return nil
}
