package main

import (
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/app/catalogue"
	"builder/internal/base/diag"
	"builder/internal/publishing/publish"
	"builder/internal/view/term"
)

func signCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "sign", Usage: "sign a whole static index", ArgsUsage: "--at file:DIR",
		Description: "The command verifies the attestations of every wheel, compares every file with its\n" +
			"digest, writes the pages again, and signs all of it in DIR/index.sigstore.json. From then\n" +
			"on every change by publish, promote, yank and prune is signed, if the state before was\n" +
			"signed by a trusted key. Whoever installs from the index checks it with\n" +
			"builder verify file:DIR or the URL of DIR.",
		Flags: append(keyFlags{}.flags(),
			&cli.StringFlag{Name: "at", Usage: "sign the index in `file:DIR`"},
			&cli.BoolFlag{Name: "anew", Usage: "sign although the last signature is missing, is not trusted, or states other records"}),
		OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error { return doSign(c, out) },
	}
}

func doSign(c *cli.Context, out term.Printer) error {
	at, err := publish.OpenCatalogue(c.String("at"), false)
	if err != nil {
		err = placeError("at", c.String("at"), "to", "at", err)
	}
	place, ok := at.(publish.Directory)
	if err == nil && !ok {
		err = diag.Errorf(diag.Usage, "--at: %s has no index: its statements are signed, and it is addressed by digest", at).WithHint("write file:DIR")
	}
	in, err2 := openSession(c, catalogue.Catalogue{}, out)
	if err := errors.Join(unexpected(c, 0), err, err2); err != nil {
		return err
	}
	state, err := app.SignIndex(c.Context, in.Session, place, c.Bool("anew"))
	if err != nil {
		return err
	}
	out.Say("%s: %d files, signed by %s on %s", place, len(state.Files), state.By, state.Made.UTC().Format(time.DateTime))
	return nil
}
