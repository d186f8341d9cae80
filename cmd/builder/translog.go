package main

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/app/catalogue"
	"builder/internal/view/term"
)

// translogFlags name the transparency log of a publisher.
func translogFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "log", Usage: "add the statements to the transparency log in `DIR`"},
		&cli.StringFlag{Name: "log-key", Usage: "sign the log with the private key in `FILE`"},
		&cli.StringFlag{Name: "witnesses", Usage: "let the witnesses in `FILE` cosign the log"},
	}
}

func readTranslog(c *cli.Context) app.LogRequest {
	return app.LogRequest{Dir: c.String("log"), Key: c.String("log-key"), Witnesses: c.String("witnesses")}
}

func logCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "log", Usage: "list the statements in a transparency log, or make a log", ArgsUsage: "--trust FILE.yaml [WORD…]",
		Description: "The command reads the whole log of a trust file, and checks its signatures and that it\n" +
			"continues what this host has seen before. An entry is listed if it contains every word:\n" +
			"of the name of an artifact or statement, of a digest, or of a kind. --new makes an empty\n" +
			"log in the directory of --log, and its key in the file of --log-key and in FILE.pub. Any\n" +
			"web server can serve the directory.",
		Flags: logFlags(), OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error { return doLog(c, out) },
	}
}

func logFlags() []cli.Flag {
	return []cli.Flag{
		jsonFlag(),
		trustFlag(),
		&cli.StringFlag{Name: "new", Usage: "make a log with the name `NAME`, such as example.com/builds"},
		&cli.StringFlag{Name: "log", Usage: "with --new: make the log in `DIR`"},
		&cli.StringFlag{Name: "log-key", Usage: "with --new: write its private key to `FILE`"},
	}
}

func doLog(c *cli.Context, out term.Printer) error {
	if name := c.String("new"); name != "" {
		if err := unexpected(c, 0); err != nil {
			return err
		}
		r := readTranslog(c)
		if err := app.NewLog(name, r); err != nil {
			return err
		}
		out.Say("%s\n%s\n%s", r.Dir, r.Key, app.PublicOf(r.Key))
		return nil
	}
	in, err := openSession(c, catalogue.Catalogue{}, out)
	if err != nil {
		return err
	}
	all, err := app.LogEntries(c.Context, in.Session, c.Args().Slice())
	if err != nil {
		return err
	}
	if len(all) == 0 && c.Args().Present() {
		out.Note("no entry has every word")
	}
	return out.Print(c.Bool("json"), map[string]any{"schema": 1, "entries": all}, func() {
		var rows [][]string
		for _, l := range all {
			statement, artifact := l.Name, l.Artifact
			if l.Statement == "" { // a mark
				statement, artifact = "", l.Name
			}
			rows = append(rows, []string{l.Logged.Format(time.DateTime), artifact, l.Subject, statement, l.Kind + strings.TrimSuffix(": "+l.Because, ": ")})
		}
		out.Table([]string{"logged", "about", "sha256", "statement", "kind"}, rows)
	})
}
