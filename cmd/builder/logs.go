package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
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
		Description: logsDescription, Flags: logsFlags(), OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			o, err := readLogsOptions(c)
			if err != nil {
				return err
			}
			return doLogs(c.Context, o, out)
		},
	}
}

func logsFlags() []cli.Flag {
	return []cli.Flag{
		jsonFlag(),
		outFlag("read the run in `DIR`"),
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "print new lines until the step ends"},
	}
}

// logsOptions are the flags of logs.
type logsOptions struct {
	runlog.Request
	follow, json bool
}

func readLogsOptions(c *cli.Context) (logsOptions, error) {
	o := logsOptions{
		Request: runlog.Request{Out: c.String("out"), Cell: c.Args().Get(0), Step: c.Args().Get(1)},
		follow:  c.Bool("follow"), json: c.Bool("json"),
	}
	var errs []error
	if o.json && (o.follow || o.Step != "") {
		errs = append(errs, diag.Errorf(diag.Usage, "--json lists logs and does not print them").WithHint("leave out --json, or --follow and STEP"))
	}
	return o, errors.Join(append(errs, unexpected(c, 2))...)
}

// doLogs lists the logs of a run or prints one log.
func doLogs(ctx context.Context, o logsOptions, out term.Printer) error {
	root, cells, err := runlog.Open(o.Request)
	if err != nil {
		return err
	}
	defer root.Close()
	switch {
	case o.json:
		return out.JSON(cells)
	case o.Cell == "" && !o.follow:
		show.Logs(out, cells)
		return nil
	}
	log, err := runlog.Choose(cells, o.Request)
	if err != nil {
		return err
	}
	return printLog(ctx, root, log, o, out)
}

// printLog prints a log without its control characters, and its name on stderr.
func printLog(ctx context.Context, root *os.Root, log runlog.Log, o logsOptions, out term.Printer) error {
	f, err := steplog.Open(root, log.Log)
	if errors.Is(err, fs.ErrNotExist) {
		return diag.Errorf(diag.Usage, "%w", err)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	out.Note("%s: %s", term.Clean(filepath.Join(o.Out, log.Log)), log.Verdict)
	to := term.Cleaned(out.Stdout)
	defer to.Flush()
	if o.follow {
		return steplog.Follow(ctx, to, f)
	}
	_, err = io.Copy(to, f)
	return err
}
