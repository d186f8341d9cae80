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
	"builder/internal/view/progress"
	"builder/internal/view/term"
)

func publishCommand(cat catalogue.Catalogue, err error, out term.Printer) *cli.Command {
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
		Flags: publishFlags(), OnUsageError: usageError, HideHelpCommand: true,
		Subcommands: []*cli.Command{promoteCommand(out), yankCommand(out), publishedCommand(out)},
		Action: func(c *cli.Context) error {
			in, err := readInvocation(c, cat, out)
			r, err2 := readPublish(c)
			if err := errors.Join(err2, err); err != nil {
				return err
			}
			if _, err := in.Keys.Trusted(); err != nil {
				return err
			}
			return in.show(c.Context, func(d *progress.Display) error {
				done, err := release.Publish(c.Context, release.Setup{Keys: in.Keys, NoInstall: in.NoInstall, Display: in.Display}, r)
				if done.Schema == 0 {
					return err
				}
				d.Close()
				return errors.Join(out.Print(c.Bool("json"), done, func() { show.Published(out, done, "was there") }), err)
			})
		},
	}
}

func publishFlags() []cli.Flag {
	return []cli.Flag{
		jsonFlag(),
		trustFlag(),
		keyFlag(),
		&cli.StringFlag{Name: "to", Usage: "publish to `DEST`: " + publish.Destinations},
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
		errs = append(errs, diag.Errorf(diag.Usage, "--to: name a destination").WithHint("write %s", publish.Destinations))
	}
	var err error
	if o.Channel, err = publish.Channel(c.String("channel")); err != nil {
		err = diag.Errorf(diag.Usage, "--channel: %w", err)
	}
	return o, errors.Join(append(errs, err)...)
}
