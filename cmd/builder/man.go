package main

import (
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app/manual"
	"builder/internal/base/diag"
	"builder/internal/view/term"
)

func manCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "man", Usage: "print a man page, or write all of them", ArgsUsage: "[COMMAND…]", OnUsageError: usageError,
		Flags: []cli.Flag{&cli.StringFlag{Name: "out", Usage: "write the pages of all commands into `DIR`, and make it if missing"}},
		Action: func(c *cli.Context) error {
			tool := syntaxOf(c.App)
			dir, words := c.String("out"), c.Args().Slice()
			switch {
			case c.IsSet("out") && len(words) > 0:
				return diag.Errorf(diag.Usage, "--out writes every page, and %q names one: give one of them", strings.Join(words, " "))
			case c.IsSet("out"):
				return manual.WritePages(tool, dir, edition())
			}
			v, err := manual.Find(tool, words)
			if err != nil {
				return err
			}
			out.Say("%s", strings.TrimSuffix(manual.Page(append([]string{tool.Name}, words...), v, edition()), "\n"))
			return nil
		},
	}
}

// edition returns the version of this program and the date of its commit.
func edition() manual.Edition {
	e := manual.Edition{Version: version}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.time" {
				e.Date, _, _ = strings.Cut(s.Value, "T")
			}
		}
	}
	return e
}
