package main

import (
	"context"
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/app/catalogue"
	"builder/internal/base/diag"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/internal/publishing/index"
	"builder/internal/publishing/publish"
	"builder/internal/view/term"
)

// pruneReport is the result of publish --prune --json.
type pruneReport struct {
	Schema int                `json:"schema"`
	At     string             `json:"at"`
	DryRun bool               `json:"dry_run"`
	Wheels []publish.Decision `json:"wheels"`
}

// doPrune says which wheels may go, and lets them go with --yes.
// A catalogue with a fault may lack a lock that needs something: then nothing goes.
func doPrune(c *cli.Context, cat catalogue.Catalogue, fault error, out printer) error {
	at, rule, err := readPrune(c)
	home, err2 := homeDir()
	if err := errors.Join(fault, err, err2); err != nil {
		return err
	}
	all, err := at.List(c.Context)
	if err != nil {
		return err
	}
	needed, err := lockedKeys(c.Context, cat, home, all)
	if err != nil {
		return err
	}
	report := pruneReport{Schema: 1, At: at.String(), DryRun: !c.Bool("yes") || c.Bool("dry-run"), Wheels: rule.Decide(all, needed, time.Now())}
	if !report.DryRun {
		var keys []string
		for _, d := range report.Wheels {
			if d.Remove {
				keys = append(keys, d.Key)
			}
		}
		if err := at.Withdraw(c.Context, keys...); err != nil {
			return err
		}
	}
	return report.print(c.Bool("json"), out)
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

// lockedKeys returns the keys that the locks known here ask for, of the cells that
// are published. Of what no recipe here makes nothing is known; a lock that cannot
// be read is an error.
func lockedKeys(ctx context.Context, cat catalogue.Catalogue, home string, all []index.Record) (map[string]bool, error) {
	for _, r := range cat.Recipes {
		if _, err := cat.Locks(home).Read(r.Name); err != nil {
			return nil, err
		}
	}
	asm := assembler(cat, options{home: home})
	needed := map[string]bool{}
	for _, r := range all {
		made, err := asm.Input(ctx, recipe.Input{Recipe: r.Recipe, Axes: matrix.Filter(r.Axes)})
		if err != nil {
			continue
		}
		for _, e := range made {
			needed[e.Key()] = true
		}
	}
	return needed, nil
}

func (r pruneReport) print(asJSON bool, out printer) error {
	if asJSON {
		return printJSON(out, r)
	}
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
	term.Table(out.stdout, term.Width(out.stdout), []string{"cell", "state", "because"}, rows)
	return nil
}
