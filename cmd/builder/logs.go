package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/build/runlog"
	"builder/internal/build/steplog"
	"builder/internal/view/report"
	"builder/internal/view/term"
)

const logsDescription = `Without CELL it lists the cells of the run in DIR, with their steps: the verdict of
each, how long it took, and the size of its log. With CELL it prints a log: that of
STEP, else that of the step that failed, else the last. CELL and STEP may be the
beginning or any part of a name that no other has.

With -f it goes on printing until the step ends, or the run is killed. Without CELL
it follows the one cell that runs.`

func logsCommand(out printer) *cli.Command {
	return &cli.Command{
		Name: "logs", Usage: "what the steps of a run wrote, and write", ArgsUsage: "[CELL] [STEP]",
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
		outFlag("look at the run in `DIR`"),
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "print what is added until the step ends"},
		&cli.IntFlag{Name: "tail", Usage: "print the last `N` lines only"},
	}
}

// logsOptions is what the flags of logs say.
type logsOptions struct {
	out, cell, step string
	follow, json    bool
	tail            int // lines; 0 is all
}

func readLogsOptions(c *cli.Context) (logsOptions, error) {
	o := logsOptions{
		out: c.String("out"), cell: c.Args().Get(0), step: c.Args().Get(1),
		follow: c.Bool("follow"), json: c.Bool("json"), tail: c.Int("tail"),
	}
	var faults []error
	if c.IsSet("tail") && o.tail < 1 {
		faults = append(faults, diag.Errorf(diag.Usage, "--tail: %d is not at least 1", o.tail))
	}
	if o.json && (o.follow || o.step != "") {
		faults = append(faults, diag.Errorf(diag.Usage, "--json: it lists logs and prints none").WithHint("leave out --json, or --follow and STEP"))
	}
	return o, errors.Join(append(faults, unexpected(c, 2))...)
}

// doLogs lists the logs of a run, or prints one.
func doLogs(ctx context.Context, o logsOptions, out printer) error {
	run, err := report.Read(filepath.Join(o.out, "run.json"))
	if err != nil {
		return diag.Errorf(diag.Usage, "--out: %w", err).WithHint("name a directory in which builder run wrote its results")
	}
	root, err := os.OpenRoot(o.out)
	if err != nil {
		return diag.Errorf(diag.Usage, "--out: %w", err)
	}
	defer root.Close()
	cells := runlog.Survey(root, run)
	if o.cell != "" {
		id, err := pick("cell", o.cell, cells, func(c runlog.Cell) string { return c.Cell })
		if err != nil {
			return err
		}
		cells = slices.DeleteFunc(cells, func(c runlog.Cell) bool { return c.Cell != id })
	}
	switch {
	case o.json:
		return printJSON(out, cells)
	case o.cell == "" && !o.follow:
		listLogs(cells, out)
		return nil
	}
	log, err := chooseLog(cells, o)
	if err != nil {
		return err
	}
	return printLog(ctx, root, log, o, out)
}

// pick finds the one that a word names: by all of its name, its beginning, or any
// part.
func pick[T any](what, word string, from []T, name func(T) string) (string, error) {
	var names []string
	for _, f := range from {
		names = append(names, name(f))
	}
	for _, matches := range []func(name, word string) bool{
		func(name, word string) bool { return name == word }, strings.HasPrefix, strings.Contains,
	} {
		found := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !matches(name, word) })
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return "", diag.Errorf(diag.Usage, "%q may be %d of the %ss", word, len(found), what).WithHint("write more of one: %s", strings.Join(found, ", "))
		}
	}
	if len(names) == 0 {
		return "", diag.Errorf(diag.Usage, "no %s is called %q: there is none", what, word).
			WithHint("`builder run RECIPE` makes cells, below the directory of --out (out)")
	}
	return "", diag.Errorf(diag.Usage, "no %s is called %q", what, word).WithHint("%s", diag.DidYouMean(word, names))
}

// chooseLog chooses among the logs of the one cell that was named, or that runs.
func chooseLog(cells []runlog.Cell, o logsOptions) (runlog.Log, error) {
	if o.cell == "" {
		cells = slices.DeleteFunc(cells, func(c runlog.Cell) bool { return c.Status != runlog.Running })
		if len(cells) == 0 {
			return runlog.Log{}, diag.Errorf(diag.Usage, "no cell runs in %s", o.out).WithHint("`builder logs --out %s` lists what there is", o.out)
		}
		if len(cells) > 1 {
			return runlog.Log{}, diag.Errorf(diag.Usage, "%d cells run in %s, and one can be followed", len(cells), o.out).WithHint("`builder logs --out %s` lists them", o.out)
		}
	}
	cell := cells[0]
	if len(cell.Steps) == 0 {
		return runlog.Log{}, diag.Errorf(diag.Usage, "%s has no logs: it has not begun", cell.Cell)
	}
	at := len(cell.Steps) - 1
	if cell.Failed >= 0 {
		at = cell.Failed
	}
	if o.step != "" {
		step, err := pick("step", o.step, cell.Steps, func(l runlog.Log) string { return l.Step })
		if err != nil {
			return runlog.Log{}, err
		}
		at = slices.IndexFunc(cell.Steps, func(l runlog.Log) bool { return l.Step == step })
	}
	log := cell.Steps[at]
	if log.Bytes == nil {
		return log, diag.Errorf(diag.Usage, "%s is not there", filepath.Join(o.out, log.Log)).
			WithHint("what was taken from a store or a registry was logged where it was built")
	}
	return log, nil
}

// listLogs prints the cells and their steps.
func listLogs(cells []runlog.Cell, out printer) {
	for _, c := range cells {
		out.say("%s: %s", term.Clean(c.Cell), c.Status)
		var rows [][]string
		for _, l := range c.Steps {
			took, size := "-", "-"
			if l.Seconds != nil {
				took = fmt.Sprintf("%.1fs", float64(*l.Seconds))
			}
			if l.Bytes != nil {
				size = fmt.Sprintf("%.1f kB", float64(*l.Bytes)/1e3)
			}
			rows = append(rows, []string{l.Step, l.Verdict, took, size})
		}
		if len(rows) > 0 {
			term.Table(out.stdout, term.Width(out.stdout), []string{"step", "verdict", "time", "log"}, rows)
		}
	}
}

// printLog prints a log without its control characters and says on stderr which it
// is.
func printLog(ctx context.Context, root *os.Root, log runlog.Log, o logsOptions, out printer) error {
	f, err := steplog.Open(root, log.Log)
	if errors.Is(err, fs.ErrNotExist) {
		return diag.Errorf(diag.Usage, "%w", err)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	out.note("%s: %s", term.Clean(filepath.Join(o.out, log.Log)), log.Verdict)
	if err := steplog.SeekTail(f, o.tail); err != nil {
		return err
	}
	to := term.Cleaned(out.stdout)
	defer to.Flush()
	if o.follow {
		return steplog.Follow(ctx, to, f)
	}
	_, err = io.Copy(to, f)
	return err
}
