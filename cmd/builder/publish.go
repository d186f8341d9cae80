package main

import (
	"cmp"
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/app/catalogue"
	"builder/internal/base/diag"
	"builder/internal/publishing/publish"
	"builder/internal/view/progress"
)

func publishCommand(cat catalogue.Catalogue, err error, out printer) *cli.Command {
	return &cli.Command{
		Name: "publish", Usage: "put what passed where others install it from", ArgsUsage: "PATH… --to DEST",
		Description: "PATH is the directory of a cell (out/<cell>) or its wheel. It is verified as builder\n" +
			"verify does, by the policy of the channel: candidate asks for every gate that needs no\n" +
			"GPU, stable for those on GPUs and a second build too. The same bytes again change\n" +
			"nothing; other bytes under a published name are refused (exit 7).\n\n" +
			"file:DIR is a static index: any web server that serves DIR makes DIR/simple an\n" +
			"--index-url for pip and uv, and DIR itself a page to choose from. oci:// takes the\n" +
			"cell as an artifact and what is said about it as referrers, with docker's\n" +
			"credentials. pypi:URL takes the wheel alone, with credentials from\n" +
			"BUILDER_PUBLISH_TOKEN, or _USERNAME and _PASSWORD, netrc or keyring. Afterwards it\n" +
			"looks there as those do who install: pip and uv by hash, a pull by digest that\n" +
			"verifies.",
		Flags: publishFlags(), OnUsageError: usageError, HideHelpCommand: true,
		Subcommands: behindPublish(promoteCommand(out), yankCommand(out), publishedCommand(out), pruneCommand(cat, err, out)),
		Action: func(c *cli.Context) error {
			in, err := openSession(c, cat, out)
			r, err2 := readPublish(c)
			if err := errors.Join(err2, err); err != nil {
				return err
			}
			if _, err := in.Trusted(); err != nil {
				return err
			}
			return in.show(c.Context, func(d *progress.Shown) error {
				done, err := app.Publish(c.Context, in.Session, r)
				if place, ok := errors.AsType[*app.PlaceError](err); ok {
					return placeError("to", r.To, "channel", "to", place.Err)
				}
				if done.Schema == 0 {
					return err
				}
				d.Close()
				return errors.Join(out.print(c.Bool("json"), done, func() { printPublished(out, done) }), err)
			})
		},
	}
}

// behindPublish are verbs that take no flag of publish, which stands before them.
func behindPublish(verbs ...*cli.Command) []*cli.Command {
	for _, verb := range verbs {
		do := verb.Action
		verb.Action = func(c *cli.Context) error {
			if err := flagsBefore(c, verb.Name); err != nil {
				return err
			}
			return do(c)
		}
	}
	return verbs
}

func publishFlags() []cli.Flag {
	return []cli.Flag{
		jsonFlag(),
		trustFlag(),
		&cli.StringFlag{Name: "to", Usage: "publish to `DEST`: " + publish.Destinations},
		channelFlag("publish into `CHANNEL`: candidate or stable"),
		&cli.BoolFlag{Name: "dry-run", Usage: "say what would be done, and do nothing"},
		&cli.BoolFlag{Name: "no-check", Usage: "do not look at what was published as a client"},
		insecureFlag(),
		progressFlag(),
	}
}

func insecureFlag() cli.Flag {
	return &cli.BoolFlag{Name: "insecure", Usage: "speak plain HTTP to hosts other than this one"}
}

func channelFlag(usage string) cli.Flag {
	return &cli.StringFlag{Name: "channel", Value: "candidate", Usage: usage}
}

func readPublish(c *cli.Context) (app.PublishRequest, error) {
	o := app.PublishRequest{
		Paths: c.Args().Slice(), DryRun: c.Bool("dry-run"), Check: !c.Bool("no-check"), To: c.String("to"), Insecure: c.Bool("insecure"),
	}
	var errs []error
	if len(o.Paths) == 0 {
		errs = append(errs, diag.Errorf(diag.Usage, "%s: name the directory of a cell, or a wheel", c.Command.HelpName).
			WithHint("%s out/<cell> --to file:DIR", c.Command.HelpName))
	}
	if o.To == "" {
		errs = append(errs, diag.Errorf(diag.Usage, "--to: name a destination").WithHint("write %s", publish.Destinations))
	}
	var err error
	if o.Channel, err = publish.Channel(c.String("channel")); err != nil {
		err = placeError("channel", c.String("channel"), "channel", "to", err)
	}
	return o, errors.Join(append(errs, err)...)
}

func printPublished(out printer, r app.PublishReport) {
	var rows [][]string
	for _, p := range r.Published {
		state := "published"
		switch {
		case r.DryRun:
			state = "would be published"
		case p.Existed:
			state = "was there"
		}
		rows = append(rows, []string{p.Wheel, state, cmp.Or(p.Channel, "-"), cmp.Or(strings.Join(p.Checked, ", "), "-"), cmp.Or(p.Where, r.To)})
	}
	if len(rows) > 0 {
		out.table([]string{"wheel", "state", "channels", "checked by", "where"}, rows)
	}
}
