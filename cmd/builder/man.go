package main

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app/manual"
	"builder/internal/app/syntax"
	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
)

func manCommand(out printer) *cli.Command {
	return &cli.Command{
		Name: "man", Usage: "print a man page, or write all of them", ArgsUsage: "[COMMAND…]", OnUsageError: usageError,
		Flags: []cli.Flag{&cli.StringFlag{Name: "out", Usage: "write the pages of all commands into `DIR`, which is made where it lacks"}},
		Action: func(c *cli.Context) error {
			tool := syntaxOf(c.App)
			dir, words := c.String("out"), c.Args().Slice()
			switch {
			case c.IsSet("out") && len(words) > 0:
				return diag.Errorf(diag.Usage, "--out writes every page, and %q names one: give one of them", strings.Join(words, " "))
			case c.IsSet("out"):
				return writePages(tool, dir)
			}
			v, err := findVerb(tool, words)
			if err != nil {
				return err
			}
			out.say("%s", strings.TrimSuffix(manual.Page(append([]string{tool.Name}, words...), v, edition()), "\n"))
			return nil
		},
	}
}

// findVerb follows words, and suggests the nearest where one is no verb.
func findVerb(v syntax.Verb, words []string) (syntax.Verb, error) {
	for _, word := range words {
		below, ok := v.Find(word)
		if !ok {
			var known []string
			for _, other := range v.Verbs {
				known = append(known, other.Name)
			}
			return v, diag.Errorf(diag.Usage, "%s has no command %q", v.Name, word).WithHint("%s", diag.DidYouMean(word, known))
		}
		v = below
	}
	return v, nil
}

// edition is that of this program. Its date is that of the commit.
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

// writePages writes a page for every verb.
func writePages(tool syntax.Verb, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return diag.Errorf(diag.Usage, "--out: %w", err)
	}
	var fault error
	tool.Walk(func(words []string, v syntax.Verb) {
		if fault == nil {
			fault = atomicfile.Write(filepath.Join(dir, manual.PageName(words)+".1"), []byte(manual.Page(words, v, edition())))
		}
	})
	return fault
}
