package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/base/diag"
	"builder/internal/build/runlog"
	"builder/internal/build/steplog"
	"builder/internal/view/term"
)

const logsDescription = `Without CELL it lists the cells of the run in DIR, with their steps: the verdict,
duration and log size of each. With CELL it prints a log: of STEP, else of the failed
step, else of the last step. CELL and STEP may be the beginning or any part of a name,
if no other name has it.

-f prints new lines until the step ends or the run is killed. Without CELL it follows
the one running cell.`

func logsCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "logs", Usage: "print the logs of a run, also while it runs", ArgsUsage: "[CELL] [STEP]",
		Description: logsDescription,
		Flags: []cli.Flag{
			outFlag("read the run in `DIR`"),
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "print new lines until the step ends"},
		},
		Action: func(c *cli.Context) error {
			if err := unexpected(c, 2); err != nil {
				return err
			}
			r := runlog.Request{Out: c.String("out"), Cell: c.Args().Get(0), Step: c.Args().Get(1)}
			return doLogs(c.Context, r, c.Bool("follow"), out)
		},
	}
}

// doLogs lists the logs of a run or prints one log.
func doLogs(ctx context.Context, r runlog.Request, follow bool, out term.Printer) error {
	root, cells, err := runlog.Open(r)
	if err != nil {
		return err
	}
	defer root.Close()
	if r.Cell == "" && !follow {
		show.Logs(out, cells)
		return nil
	}
	log, err := runlog.Choose(cells, r)
	if err != nil {
		return err
	}
	f, err := steplog.Open(root, log.Log)
	if errors.Is(err, fs.ErrNotExist) {
		return diag.Errorf(diag.Usage, "%w", err)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	out.Note("%s: %s", term.Clean(filepath.Join(r.Out, log.Log)), log.Verdict)
	to := term.Cleaned(out.Stdout) // without control characters
	defer to.Flush()
	if follow {
		return steplog.Follow(ctx, to, f)
	}
	_, err = io.Copy(to, f)
	return err
}
