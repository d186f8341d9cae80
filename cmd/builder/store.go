package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/app/catalogue"
)

func storeCommand(cat catalogue.Catalogue, err error, out printer) *cli.Command {
	return &cli.Command{
		Name: "store", Usage: "export, import, clean, verify and list the inputs of builds",
		OnUsageError: usageError, Action: unknownCommand, HideHelpCommand: true,
		Subcommands: []*cli.Command{
			exportCommand(cat, err, out),
			importCommand(cat, err, out),
			{
				Name: "gc", Usage: "free disk space: empty the engine's cache and shrink the store", OnUsageError: usageError,
				Description: "Empties the cache of the engine started by builder. The next builds fill it again\nfrom the store. Removes from the store the files unused for the longest time: first\npartial downloads, then files that can be fetched again, last the results of cells.\nRemoves scratch files that nobody used for a day or whose blob is gone. Waits until no other builder uses the store.",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "keep", Value: "10%", Usage: "shrink the store to at most `SIZE`, such as 50GB or 0, or a share of the disk"},
					&cli.BoolFlag{Name: "keep-engine", Usage: "leave the engine's cache, which has its own limit (--engine-cache)"},
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
func openStore(c *cli.Context, out printer) (invocation, error) {
	if err := unexpected(c, 0); err != nil {
		return invocation{}, err
	}
	return openSession(c, catalogue.Catalogue{}, out)
}

func collect(c *cli.Context, out printer) error {
	in, err := openStore(c, out)
	if err != nil {
		return err
	}
	r := app.CollectRequest{Keep: c.String("keep"), KeepEngine: c.Bool("keep-engine"), DryRun: c.Bool("dry-run")}
	done, err := app.Collect(c.Context, in.Session, r)
	if done.Places == nil {
		return err
	}
	return errors.Join(err, out.print(c.Bool("json"), done, func() { printCollected(out, done, r) }))
}

func printCollected(out printer, done app.Collected, r app.CollectRequest) {
	verb := "removed"
	if r.DryRun {
		verb = "would remove"
	}
	for _, f := range done.Files {
		out.say("%s %s %s, %s, last used %s", verb, f.Kind, f.SHA256, megabytes(f.Size), f.Used.Format("2006-01-02"))
	}
	for _, name := range done.Staged {
		out.say("%s scratch/%s", verb, name)
	}
	out.say("%s %d files and %d results; the store has %s, had %s", verb, len(done.Files), len(done.Results), megabytes(done.After), megabytes(done.Before))
	for _, p := range done.Places {
		would := ""
		if p.Emptied() && r.DryRun && !r.KeepEngine {
			would = ", and would be emptied"
		}
		out.say("%s has %s, had %s%s", p.Name, megabytes(p.After), megabytes(p.Before), would)
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

func verifyStore(c *cli.Context, out printer) error {
	in, err := openStore(c, out)
	if err != nil {
		return err
	}
	read, err := app.VerifyStore(c.Context, in.Session)
	if read.Damaged == nil {
		return err
	}
	return errors.Join(err, out.print(c.Bool("json"), read, func() {
		out.say("read %d files, %s: %d damaged", read.Files, megabytes(read.Bytes), len(read.Damaged))
	}))
}

func listStore(c *cli.Context, out printer) error {
	in, err := openStore(c, out)
	if err != nil {
		return err
	}
	held, err := app.ListStore(c.Context, in.Session)
	if err != nil {
		return err
	}
	return out.print(c.Bool("json"), held, func() {
		var rows [][]string
		for _, g := range held.Kinds {
			rows = append(rows, []string{string(g.Kind), fmt.Sprint(g.Files), megabytes(g.Bytes)})
		}
		out.table([]string{"kind", "files", "size"}, rows)
		out.say("%d files, %s, %d results in %s", held.Files, megabytes(held.Bytes), held.Results, held.Store)
		for _, p := range held.Places {
			out.say("%s has %s", p.Name, megabytes(p.Before))
		}
	})
}
