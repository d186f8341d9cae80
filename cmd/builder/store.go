package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/host"
	"builder/internal/base/size"
	"builder/internal/plan/catalogue"
	"builder/internal/view/term"
)

func storeCommand(cat catalogue.Catalogue, err error, out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "store", Usage: "export, import, clean, verify and list the inputs of builds",
		OnUsageError: usageError, Action: unknownCommand, HideHelpCommand: true,
		Subcommands: []*cli.Command{
			exportCommand(cat, err, out),
			importCommand(cat, err, out),
			{
				Name: "gc", Usage: "free disk space: empty the engine's cache and shrink the store", OnUsageError: usageError,
				Description: "Empties the cache of the engine started by builder. The next builds fill it again\nfrom the store. Removes from the store the files unused for the longest time.\nRemoves scratch files that nobody used for a day or whose file in the store is gone.\nWaits until no other builder uses the store.",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "keep", Value: "10%", Usage: "shrink the store to at most `SIZE`, such as 50GB or 0, or a share of the disk"},
					&cli.BoolFlag{Name: "dry-run", Usage: "list the removals, and remove nothing"},
					jsonFlag(),
				},
				Action: func(c *cli.Context) error { return collect(c, out) },
			},
			{
				Name: "verify", Usage: "read every file and remove damaged ones: exit 8 if there are any", OnUsageError: usageError,
				Flags:  []cli.Flag{jsonFlag()},
				Action: func(c *cli.Context) error { return verifyStore(c, out) },
			},
			{
				Name: "list", Usage: "count the files of each kind in the store", OnUsageError: usageError,
				Flags:  []cli.Flag{jsonFlag()},
				Action: func(c *cli.Context) error { return listStore(c, out) },
			},
		},
	}
}

// openStore reads the flags of a verb without operands.
func openStore(c *cli.Context, out term.Printer) (invocation, error) {
	if err := unexpected(c, 0); err != nil {
		return invocation{}, err
	}
	return readInvocation(c, catalogue.Catalogue{}, out)
}

func collect(c *cli.Context, out term.Printer) error {
	in, err := openStore(c, out)
	if err != nil {
		return err
	}
	r := host.CollectRequest{Keep: c.String("keep"), DryRun: c.Bool("dry-run")}
	done, err := host.Collect(c.Context, in.host(), r)
	if done.Places == nil {
		return err
	}
	return errors.Join(err, out.Print(c.Bool("json"), done, func() { show.Collected(out, done, r) }))
}

func verifyStore(c *cli.Context, out term.Printer) error {
	in, err := openStore(c, out)
	if err != nil {
		return err
	}
	read, err := host.VerifyStore(c.Context, in.host())
	if read.Damaged == nil {
		return err
	}
	return errors.Join(err, out.Print(c.Bool("json"), read, func() {
		out.Say("read %d files, %s: %d damaged", read.Files, size.Text(read.Bytes), len(read.Damaged))
	}))
}

func listStore(c *cli.Context, out term.Printer) error {
	in, err := openStore(c, out)
	if err != nil {
		return err
	}
	held, err := host.ListStore(c.Context, in.host())
	if err != nil {
		return err
	}
	return out.Print(c.Bool("json"), held, func() {
		var rows [][]string
		for _, g := range held.Kinds {
			rows = append(rows, []string{string(g.Kind), fmt.Sprint(g.Files), size.Text(g.Bytes)})
		}
		out.Table([]string{"kind", "files", "size"}, rows)
		out.Say("%d files, %s, %d results in %s", held.Files, size.Text(held.Bytes), held.Results, held.Store)
		for _, p := range held.Places {
			out.Say("%s has %s", p.Name, size.Text(p.Before))
		}
	})
}
