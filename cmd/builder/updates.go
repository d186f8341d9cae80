package main

import (
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/app/catalogue"
	"builder/internal/app/show"
	"builder/internal/view/term"
)

func updatesCommand(cat catalogue.Catalogue, err error, out term.Printer) *cli.Command {
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
			return errors.Join(out.Print(c.Bool("json"), u, func() { show.Updates(out, u) }), err, u.Fault())
		},
	}
}
