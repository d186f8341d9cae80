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

func publishCommand(cat catalogue.Catalogue, out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "publish", Usage: "copy wheels that passed to an index, registry or upload server", ArgsUsage: "PATH… --to DEST",
		Description: "PATH is the directory of a cell (out/<cell>) or its wheel. publish verifies it like\n" +
			"builder verify, by the policy of the channel: candidate requires every gate that needs\n" +
			"no GPU, stable also the gates on GPUs and a second build. Publishing the same bytes\n" +
			"again changes nothing. Other bytes under a published name are refused (exit 7).\n\n" +
			"file:DIR is a static index. If a web server serves DIR, DIR/simple is an --index-url\n" +
			"for pip and uv, and DIR a page for browsers. oci:// stores the cell as an artifact and\n" +
			"its attestations as referrers, with docker's credentials. pypi:URL uploads the wheel\n" +
			"alone with uv publish, and compares the digest in the index before and after. uv takes\n" +
			"the credentials from UV_PUBLISH_TOKEN, or UV_PUBLISH_USERNAME and _PASSWORD, netrc or a\n" +
			"keyring. The other destinations are checked as a client would: by pip with hashes, or\n" +
			"by a pull by digest with verification.",
		Flags:       publishFlags(),
		Subcommands: []*cli.Command{promoteCommand(out), yankCommand(out), publishedCommand(out)},
		Action: func(c *cli.Context) error {
			in, err := readInvocation(c, cat, out)
			r, err2 := readPublish(c)
			if err := in.begin(c.Context, err2, err); err != nil {
				return err
			}
			done, err := release.Publish(c.Context, release.Setup{Keys: in.Keys, NoInstall: in.NoInstall, Display: in.Display}, r)
			return printEnd(c, in, done, err, func(out term.Printer, done release.Report) { show.Published(out, done, "was there") })
		},
	}
}

func publishFlags() []cli.Flag {
	return []cli.Flag{
		jsonFlag(),
		trustFlag(),
		keyFlag(),
		&cli.StringFlag{Name: "to", Usage: "publish to `DEST`: " + publish.Syntax[publish.Destination]()},
		channelFlag(attest.Candidate, "publish into the channel"),
		&cli.BoolFlag{Name: "no-check", Usage: "skip the check of the destination as a client"},
		insecureFlag(),
		progressFlag(),
	}
}

func insecureFlag() cli.Flag {
	return &cli.BoolFlag{Name: "insecure", Usage: "use plain HTTP for other hosts too"}
}

func channelFlag(preferred attest.Policy, usage string) cli.Flag {
	return &cli.StringFlag{Name: "channel", Value: string(preferred), Usage: usage + " `candidate|stable`"}
}

func readChannel(c *cli.Context) (attest.Policy, error) {
	channel, err := publish.Channel(c.String("channel"))
	if err != nil {
		return "", diag.Errorf(diag.Usage, "--channel: %w", err)
	}
	return channel, nil
}

func readPublish(c *cli.Context) (release.Request, error) {
	o := release.Request{
		Paths: c.Args().Slice(), Check: !c.Bool("no-check"), To: c.String("to"), Insecure: c.Bool("insecure"),
	}
	var errs []error
	if len(o.Paths) == 0 {
		errs = append(errs, diag.Errorf(diag.Usage, "%s: name the directory of a cell, or a wheel", c.Command.HelpName).
			WithHint("%s out/<cell> --to file:DIR", c.Command.HelpName))
	}
	if o.To == "" {
		errs = append(errs, diag.Errorf(diag.Usage, "--to: name a destination").WithHint("write %s", publish.Syntax[publish.Destination]()))
	}
	var err error
	o.Channel, err = readChannel(c)
	return o, errors.Join(append(errs, err)...)
}

func promoteCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "promote", Usage: "add a published wheel to another channel, if its verdicts allow that", ArgsUsage: "CELL --at DEST",
		Description: "CELL is the id or the key of a published cell. The command reads its attestations from\n" +
			"the destination and verifies them by the policy of the channel. It builds nothing and\n" +
			"changes no byte of the wheel.",
		Flags:  append(catalogueFlags(), trustFlag(), keyFlag(), channelFlag(attest.Stable, "promote to the channel")),
		Action: func(c *cli.Context) error { return doPromote(c, out) },
	}
}

func doPromote(c *cli.Context, out term.Printer) error {
	at, cell, err1 := publishedCell(c)
	channel, err2 := readChannel(c)
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
		&cli.StringFlag{Name: "at", Usage: "use the destination `DEST`: " + publish.Syntax[publish.Catalogue]()},
		insecureFlag(),
		jsonFlag(),
	}
}

// publishedCell reads the place and the one cell of a command.
func publishedCell(c *cli.Context) (at publish.Catalogue, cell string, err error) {
	if c.Args().Len() != 1 {
		err = diag.Errorf(diag.Usage, "%s: name one cell", c.Command.HelpName).WithHint("list the cells with `builder publish list --at DEST`")
	}
	at, e := publish.Open[publish.Catalogue](c.String("at"), publish.Options{Insecure: c.Bool("insecure")})
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
		Flags: append(catalogueFlags(),
			&cli.StringFlag{Name: "because", Usage: "give `TEXT` as the reason"},
			&cli.BoolFlag{Name: "undo", Usage: "remove the mark"},
		),
		Action: func(c *cli.Context) error { return doYank(c, out) },
	}
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

func publishedCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the wheels of an index", ArgsUsage: "--at PLACE",
		Description: "The list is unverified data of the index: builder verify checks a wheel.",
		Flags:       []cli.Flag{jsonFlag(), &cli.StringFlag{Name: "at", Usage: "list `PLACE`: " + publish.Syntax[publish.Index]()}},
		Action:      func(c *cli.Context) error { return doListPublished(c, out) },
	}
}

func doListPublished(c *cli.Context, out term.Printer) error {
	if err := unexpected(c, 0); err != nil {
		return err
	}
	at, err := publish.Open[publish.Index](c.String("at"), publish.Options{})
	if err != nil {
		return diag.Errorf(diag.Usage, "--at: %w", err)
	}
	all, err := at.List(c.Context)
	if err != nil {
		return err
	}
	return show.PublishedCells(out, all, c.Bool("json"))
}
