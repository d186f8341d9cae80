package main

import (
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/app/catalogue"
	"builder/internal/base/diag"
	"builder/internal/publishing/publish"
)

// doPrune lists the wheels to remove, and removes them with --yes. If the catalogue has
// an error it removes nothing: a lock that needs a wheel may be missing.
func doPrune(c *cli.Context, cat catalogue.Catalogue, fault error, out printer) error {
	at, rule, err := readPrune(c)
	in, err2 := openSession(c, cat, out)
	if err := errors.Join(fault, err, err2); err != nil {
		return err
	}
	done, err := app.Prune(c.Context, in.Session, at, rule, !c.Bool("yes") || c.Bool("dry-run"))
	if err != nil {
		return err
	}
	return out.print(c.Bool("json"), done, func() { printPruned(out, done) })
}

func readPrune(c *cli.Context) (publish.Catalogue, publish.Retention, error) {
	var faults []error
	if c.Args().Present() {
		faults = append(faults, diag.Errorf(diag.Usage, "--prune: %q: it publishes nothing", c.Args().First()))
	}
	channel, err := publish.Channel(c.String("channel"))
	faults = append(faults, err)
	at, err := publish.OpenCatalogue(c.String("to"), c.Bool("insecure"))
	if err != nil {
		faults = append(faults, diag.Errorf(diag.Usage, "--to: %w", err))
	}
	rule := publish.Retention{Channel: string(channel), Age: time.Duration(c.Int("older-than")) * 24 * time.Hour, Keep: c.Int("keep")}
	if rule.Age < 0 || rule.Keep < 0 || rule.Age == 0 && rule.Keep == 0 {
		faults = append(faults, diag.Errorf(diag.Usage, "--prune: say what may go").WithHint("--older-than DAYS, --keep N, or both"))
	}
	return at, rule, errors.Join(faults...)
}

func printPruned(out printer, r app.PruneReport) {
	var rows [][]string
	for _, d := range r.Wheels {
		state := "stays"
		switch {
		case d.Remove && r.DryRun:
			state = "would go"
		case d.Remove:
			state = "gone"
		}
		rows = append(rows, []string{d.Cell, state, d.Because})
	}
	out.table([]string{"cell", "state", "because"}, rows)
}
