package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/release"
	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/plan/catalogue"
	"builder/internal/publishing/publish"
	"builder/internal/view/term"
)

func promoteCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "promote", Usage: "add a published wheel to another channel, if its verdicts allow that", ArgsUsage: "CELL --at DEST",
		Description: "CELL is the id or the key of a published cell. The command reads its attestations from\n" +
			"the destination and verifies them by the policy of the channel. It builds nothing and\n" +
			"changes no byte of the wheel.",
		Flags: promoteFlags(), OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error { return doPromote(c, out) },
	}
}

func promoteFlags() []cli.Flag {
	return append(catalogueFlags(),
		jsonFlag(),
		trustFlag(),
		keyFlag(),
		channelFlag(attest.Stable, "promote to the channel"),
	)
}

func doPromote(c *cli.Context, out term.Printer) error {
	at, cell, err1 := publishedCell(c)
	channel, err2 := publish.Channel(c.String("channel"))
	if err2 != nil {
		err2 = diag.Errorf(diag.Usage, "--channel: %w", err2)
	}
	in, err3 := readInvocation(c, catalogue.Catalogue{}, out)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	trust, err := in.Keys.Trusted()
	if err != nil {
		return err
	}
	receipt, already, err := publish.Promote(c.Context, at, cell, channel, trust)
	if err != nil {
		return err
	}
	done := release.Report{Schema: 1, To: at.String(), Already: already, Published: []publish.Receipt{receipt}}
	state := "promoted"
	if already {
		state = "was there"
	}
	return out.Print(c.Bool("json"), done, func() { show.Published(out, done, state) })
}

// catalogueFlags are the flags that name a place and the access to it.
func catalogueFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "at", Usage: "use the destination `DEST`: file:DIR or oci://HOST/REPOSITORY"},
		insecureFlag(),
	}
}

// publishedCell reads the place and the one cell of a command.
func publishedCell(c *cli.Context) (at publish.Catalogue, cell string, err error) {
	if c.Args().Len() != 1 {
		err = diag.Errorf(diag.Usage, "%s: name one cell", c.Command.HelpName).WithHint("list the cells with `builder publish list --at DEST`")
	}
	at, e := publish.OpenCatalogue(c.String("at"), c.Bool("insecure"))
	if e != nil {
		err = errors.Join(err, diag.Errorf(diag.Usage, "--at: %w", e))
	}
	return at, c.Args().First(), err
}

func yankCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "yank", Usage: "withdraw a published wheel, so that installers skip it", ArgsUsage: "CELL --at file:DIR --because TEXT",
		Description: "CELL is the id or the key of a published cell. The wheel stays in the index. pip and uv\n" +
			"install it only if its exact version is requested (PEP 592), and run --from ignores it.\n" +
			"--undo removes the mark. A registry has no such mark: remove a wheel there with the\n" +
			"registry's own tool.",
		Flags: yankFlags(), OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error { return doYank(c, out) },
	}
}

func yankFlags() []cli.Flag {
	return append(catalogueFlags(),
		jsonFlag(),
		&cli.StringFlag{Name: "because", Usage: "give `TEXT` as the reason"},
		&cli.BoolFlag{Name: "undo", Usage: "remove the mark"},
	)
}

func doYank(c *cli.Context, out term.Printer) error {
	at, cell, err := publishedCell(c)
	because := c.String("because")
	if (because == "") != c.Bool("undo") {
		err = errors.Join(err, diag.Errorf(diag.Usage, "%s: give either --because or --undo", c.Command.HelpName))
	}
	place, ok := at.(publish.Directory)
	if at != nil && !ok {
		err = errors.Join(err, diag.Errorf(diag.Usage, "--at: %s cannot mark a wheel as withdrawn", at).WithHint("remove the tags and the manifest of %s there with the registry's own tool, such as crane", cell))
	}
	if err != nil {
		return err
	}
	r, err := publish.YankCell(c.Context, place, cell, because)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return out.JSON(map[string]any{"schema": 1, "wheel": r})
	}
	state := "yanked"
	if r.Yanked == "" {
		state = "not yanked"
	}
	out.Say("%s %s at %s", r.Filename, state, place)
	return nil
}
