package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/app/catalogue"
)

func updatesCommand(cat catalogue.Catalogue, err error, out printer) *cli.Command {
	return &cli.Command{
		Name: "updates", Usage: "ask the upstreams of recipes for new releases, and propose them", ArgsUsage: "[RECIPE…]", OnUsageError: usageError,
		Description: "The recipe names the upstream of each axis: the project or the tag of the source, a\nrequirement on an exact version, or an input. uv's and pip's own configuration name\nthe Python index; --set names a local repository. The recipes are in the order of\ntheir dependencies. If an upstream does not answer, the list says so and the command\nexits with 8.\n\n--propose writes a directory for --recipes: the values with cells, their locks, and\nnarrower ranges of patches that upstream merged. Its updates.json is the report, with\nthe audit of the patches and a condensed matrix to build.",
		Flags: append(sourceFlags{}.flags(),
			recipesFlag(), jsonFlag(), noInstallFlag(),
			&cli.StringFlag{Name: "older-than", Value: "7d", Usage: "leave out releases younger than this `AGE`, such as 7d or 36h"},
			&cli.StringFlag{Name: "osv", Usage: "read known weaknesses from `PATH`, a file or directory in the format of OSV"},
			&cli.StringFlag{Name: "propose", Usage: "write a directory `DIR` for --recipes with the new values"},
		),
		Action: func(c *cli.Context) error {
			rs, err2 := named(cat.Recipes, c.Args().Slice())
			age, err3 := app.ParseAge(c.String("older-than"))
			in, err4 := openSession(c, cat, out)
			if err := errors.Join(err, err2, err3, err4); err != nil {
				return err
			}
			u, err := app.AskUpdates(c.Context, in.Session, app.UpdatesRequest{
				Recipes: rs, OlderThan: age, Now: time.Now(), OSV: c.String("osv"), Propose: c.String("propose"), Taken: takenNames(),
			})
			if u.Before == "" {
				return err
			}
			return errors.Join(out.print(c.Bool("json"), u, func() { printUpdates(out, u) }), err, u.Fault())
		},
	}
}

func printUpdates(out printer, u app.Updates) {
	var rows [][]string
	for _, n := range u.New {
		adds := fmt.Sprintf("%d cells", n.Cells)
		if n.Cells == 0 {
			adds = "no cell: " + strings.Join(n.Because, "; ")
		}
		rows = append(rows, []string{n.Recipe, "--" + n.Axis + " " + n.Value, n.Released, adds})
	}
	if len(rows) > 0 {
		out.table([]string{"recipe", "new value", "released", "adds"}, rows)
	} else {
		out.say("no upstream that answered has a new release from before %s", u.Before)
	}
	for _, x := range u.Unasked {
		out.say("not asked: %s --%s: %s: %s", x.Recipe, x.Axis, x.From, x.Why)
	}
	for _, w := range u.Weak {
		fixed := "no release mends it"
		if w.Fixed != "" {
			fixed = "mended in " + w.Fixed
		}
		out.say("weakness: %s locks %s %s: %s %s: %s (%s)", w.Recipe, w.Project, w.Version, w.ID, w.Alias, w.Summary, fixed)
	}
	if p := u.Proposal; p != nil {
		out.say("\nproposal %s: read %s/%s, then `builder plan RECIPE --recipes %s`", p.Directory, p.Directory, app.ReportFile, p.Directory)
		for _, v := range p.Values {
			if v.Lacks != "" {
				out.say("  not proposed: %s --%s %s: %s", v.Recipe, v.Axis, v.Value, v.Lacks)
				continue
			}
			out.say("  %s --%s %s: %d pins changed", v.Recipe, v.Axis, v.Value, v.Pins)
		}
		for _, text := range p.Patches {
			out.say("  patches %s", text)
		}
		for _, cell := range p.Cells {
			out.say("  build   builder run %s", cell)
		}
	}
}
