package main

import (
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/app/catalogue"
	"builder/internal/app/show"
	"builder/internal/base/diag"
	"builder/internal/publishing/publish"
	"builder/internal/view/term"
)

func pruneCommand(cat catalogue.Catalogue, err error, out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "prune", Usage: "list old published wheels, and remove them with --yes", ArgsUsage: "[CELL…] --at DEST",
		Description: "Selects the wheels of the channel that are older than --older-than and not among the\n" +
			"--keep newest of their kind, which is a recipe with all axes but the version. A wheel\n" +
			"stays if it is in a higher channel too, has a tag set by others, or is needed by a known\n" +
			"lock. With CELL, the id or the key of a published cell, it selects only that, whatever\n" +
			"its channel and age: this withdraws a wheel from a registry, where yank has no mark.",
		Flags: append(catalogueFlags(),
			recipesFlag(),
			jsonFlag(),
			channelFlag("prune `CHANNEL`: candidate or stable"),
			&cli.IntFlag{Name: "older-than", Usage: "select wheels published (in a registry: built) more than `DAYS` ago"},
			&cli.IntFlag{Name: "keep", Usage: "keep the `N` newest of each kind"},
			&cli.BoolFlag{Name: "yes", Usage: "remove the selected wheels"},
		), OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error { return doPrune(c, cat, err, out) },
	}
}

// doPrune lists the wheels to remove, and removes them with --yes. If the catalogue has
// an error it removes nothing: a lock that needs a wheel may be missing.
func doPrune(c *cli.Context, cat catalogue.Catalogue, e error, out term.Printer) error {
	at, rule, err := readPrune(c)
	in, err2 := openSession(c, cat, out)
	if err := errors.Join(e, err, err2); err != nil {
		return err
	}
	done, err := app.Prune(c.Context, in.Session, at, rule, !c.Bool("yes"))
	if err != nil {
		return err
	}
	return out.Print(c.Bool("json"), done, func() { show.Pruned(out, done) })
}

func readPrune(c *cli.Context) (publish.Catalogue, publish.Retention, error) {
	var errs []error
	channel, err := publish.Channel(c.String("channel"))
	errs = append(errs, err)
	at, err := publish.OpenCatalogue(c.String("at"), c.Bool("insecure"))
	if err != nil {
		errs = append(errs, diag.Errorf(diag.Usage, "--at: %w", err))
	}
	rule := publish.Retention{Channel: string(channel), Age: time.Duration(c.Int("older-than")) * 24 * time.Hour, Keep: c.Int("keep"), Cells: c.Args().Slice()}
	limits := c.IsSet("older-than") || c.IsSet("keep") || c.IsSet("channel")
	if len(rule.Cells) > 0 && limits {
		errs = append(errs, diag.Errorf(diag.Usage, "%s: --channel, --older-than and --keep have no effect on a named cell", c.Command.HelpName).WithHint("leave them out"))
	} else if len(rule.Cells) > 0 {
		return at, rule, errors.Join(errs...)
	}
	tooLow := func(flag string) bool { return c.IsSet(flag) && c.Int(flag) < 1 }
	if !c.IsSet("older-than") && !c.IsSet("keep") || tooLow("older-than") || tooLow("keep") {
		errs = append(errs, diag.Errorf(diag.Usage, "%s: choose the wheels to remove", c.Command.HelpName).WithHint("--older-than DAYS, --keep N, or both, each of at least 1; or name cells"))
	}
	return at, rule, errors.Join(errs...)
}
