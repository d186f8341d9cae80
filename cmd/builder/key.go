package main

import (
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app/home"
	"builder/internal/app/judge"
	"builder/internal/base/diag"
	"builder/internal/evidence/signing"
	"builder/internal/plan/catalogue"
	"builder/internal/view/term"
)

func keyFlag() cli.Flag {
	return &cli.StringFlag{Name: "key", EnvVars: []string{"BUILDER_KEY"}, Usage: "sign with the private key in `FILE`, and trust its signatures; the default is this host's own, made on first use"}
}

// signFlags are the flags of verbs that sign.
func signFlags() []cli.Flag {
	return []cli.Flag{
		keyFlag(),
		&cli.StringFlag{Name: "keyless", EnvVars: []string{"BUILDER_KEYLESS"}, Usage: "sign without a key: the Fulcio at `URL` certifies the identity of a job (needs --timestamp)"},
		&cli.StringFlag{Name: "timestamp", EnvVars: []string{"BUILDER_TIMESTAMP"}, Usage: "with --keyless: let the timestamp authority at `URL` (RFC 3161) prove the time of every signature"},
		&cli.StringFlag{Name: "rekor", EnvVars: []string{"BUILDER_REKOR"}, Usage: "with --keyless: log every signature in the Rekor at `URL`"},
	}
}

func trustFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "trust", EnvVars: []string{"BUILDER_TRUST"}, Usage: "trust signatures of the public key in `FILE`, or of the keys and identities in a FILE.yaml, besides this host's own"}
}

func keyCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "key", Usage: "make and print the keys that sign attestations",
		Subcommands: []*cli.Command{
			{
				Name: "new", Usage: "make a private key, and FILE.pub with its public key", ArgsUsage: "FILE",
				Description: "The key is ECDSA on P-256 in PEM; only its owner can read FILE. No file is replaced.",
				Action:      func(c *cli.Context) error { return doKeyNew(c, out) },
			},
			{
				Name: "show", Usage: "print the public key of this host, or of FILE, and its id", ArgsUsage: "[FILE]",
				Description: "FILE is a private or a public key. The key goes to the standard output, and its id\n" +
					"to the standard error. Statements and messages name a key by its id.",
				Action: func(c *cli.Context) error { return doKeyShow(c, out) },
			},
			{
				Name: "sign", Usage: "sign the statements of other hosts again, with a key that they do not have", ArgsUsage: "PATH…",
				Description: "PATH is the directory of a cell or a wheel. The hosts that build and gate it sign with\n" +
					"keys of their own, which --trust names. This command runs nothing of the artifact. It\n" +
					"checks that trusted keys signed every statement about these bytes, and signs each again.",
				Flags:  append(signFlags(), trustFlag()),
				Action: func(c *cli.Context) error { return doKeySign(c, out) },
			},
		},
	}
}

func doKeySign(c *cli.Context, out term.Printer) error {
	if !c.Args().Present() {
		return diag.Errorf(diag.Usage, "%s: name the directory of a cell, or a wheel", c.Command.HelpName).
			WithHint("%s out/CELL --trust builder.pub --key signing.pem", c.Command.HelpName)
	}
	in, err := readInvocation(c, catalogue.Catalogue{}, out)
	if err != nil {
		return err
	}
	all, err := judge.SignAgain(in.Keys, c.Args().Slice())
	for _, a := range all {
		if a.Statements > 0 {
			out.Say("%s: signed %d statements", a.Name, a.Statements)
		}
	}
	return err
}

func doKeyShow(c *cli.Context, out term.Printer) error {
	if err := unexpected(c, 1); err != nil {
		return err
	}
	dir, err := home.Closed(out.Note)
	if err != nil {
		return err
	}
	k, err := signing.Keys{Home: dir, Note: out.Note}.Public(c.Args().First())
	if err != nil {
		return err
	}
	out.Say("%s", strings.TrimSuffix(string(k.PEM()), "\n"))
	out.Note("id of the key: %s", k.ID)
	return nil
}

func doKeyNew(c *cli.Context, out term.Printer) error {
	if err := unexpected(c, 1); err != nil {
		return err
	}
	path := c.Args().First()
	if path == "" {
		return diag.Errorf(diag.Usage, "%s: name the file", c.Command.HelpName).WithHint("%s signing.pem", c.Command.HelpName)
	}
	for _, file := range []string{path, signing.PublicOf(path)} {
		if _, err := os.Lstat(file); err == nil {
			return diag.Errorf(diag.Usage, "%s exists, and builder replaces no key", file).WithHint("name another file, or move this one away")
		}
	}
	if err := signing.NewKeyFile(path); err != nil {
		return diag.Errorf(diag.Usage, "making a key: %w", err)
	}
	k, err := signing.ReadPublicKey(signing.PublicOf(path))
	if err != nil {
		return err
	}
	out.Say("%s\n%s\n%s", path, signing.PublicOf(path), k.ID)
	return nil
}
