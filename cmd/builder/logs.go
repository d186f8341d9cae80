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
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/diag"
	"builder/internal/report"
	"builder/internal/steplog"
	"builder/internal/term"
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

// cellLogs is one cell and the logs of its steps.
type cellLogs struct {
	Cell   string   `json:"cell"`
	Status string   `json:"status"` // that of run.json, or running
	Steps  []oneLog `json:"steps"`
	failed int      // index of the first step that failed, or -1
}

// oneLog is the log of a step. Of a step whose cell is not done the time is not
// known.
type oneLog struct {
	Step    string          `json:"step"`
	Verdict string          `json:"verdict"`
	Seconds *report.Seconds `json:"seconds,omitempty"`
	Bytes   *int64          `json:"bytes,omitempty"` // absent where there is no log
	Log     string          `json:"log"`             // below the directory of the run
}

// runningState is the word for what has not ended.
const runningState = "running"

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
	cells := surveyLogs(root, run)
	if o.cell != "" {
		id, err := pick("cell", o.cell, cells, func(c cellLogs) string { return c.Cell })
		if err != nil {
			return err
		}
		cells = slices.DeleteFunc(cells, func(c cellLogs) bool { return c.Cell != id })
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

// surveyLogs says of every cell of a run which logs there are. What run.json does
// not tell yet, of a cell that is not done, is told by the files.
func surveyLogs(root *os.Root, run report.Run) []cellLogs {
	var all []cellLogs
	for _, c := range run.Cells {
		cell := cellLogs{Cell: c.ID, Status: string(report.StatusOf(c)), Steps: []oneLog{}, failed: -1}
		for i, s := range c.Steps {
			if s.Failed && cell.failed < 0 {
				cell.failed = i
			}
			log := oneLog{Step: s.Name, Verdict: verdictOf(c, s), Seconds: new(s.Seconds), Log: s.Log}
			log.Bytes, _ = look(root, s.Log)
			cell.Steps = append(cell.Steps, log)
		}
		if len(c.Steps) == 0 {
			cell.Steps = unfinished(root, c.ID, run.Started)
			if slices.ContainsFunc(cell.Steps, oneLog.running) {
				cell.Status = runningState
			}
		}
		all = append(all, cell)
	}
	return all
}

func (l oneLog) running() bool { return l.Verdict == runningState }

// look returns the size of a log, nil where there is none, and whether its step
// still writes it.
func look(root *os.Root, name string) (size *int64, running bool) {
	f, err := steplog.Open(root, name)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false
	}
	bytes := info.Size()
	return &bytes, steplog.Running(f)
}

// unfinished returns the logs of a cell that is not done, in the order in which they
// were written to last. Those of earlier runs are left out.
func unfinished(root *os.Root, id string, since time.Time) []oneLog {
	logs := []oneLog{}
	dir, err := root.Open(filepath.Join(id, steplog.Dir))
	if err != nil {
		return logs
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(-1) // what cannot be read is not shown
	written := map[string]time.Time{}
	for _, e := range entries {
		info, err := e.Info()
		step, isLog := strings.CutSuffix(e.Name(), ".log")
		if err != nil || !isLog || info.ModTime().Before(since.Add(-time.Second)) { // file systems have coarse clocks
			continue
		}
		log := oneLog{Step: step, Verdict: "ended", Log: filepath.Join(id, steplog.Dir, e.Name())}
		size, running := look(root, log.Log)
		if running {
			log.Verdict = runningState
		}
		log.Bytes, written[step] = size, info.ModTime()
		logs = append(logs, log)
	}
	slices.SortFunc(logs, func(a, b oneLog) int {
		if a.running() != b.running() {
			if b.running() {
				return -1
			}
			return 1
		}
		return written[a.Step].Compare(written[b.Step])
	})
	return logs
}

// verdictOf is one word about a step of a cell that is done.
func verdictOf(c report.Cell, s report.Step) string {
	gate, isGate := strings.CutPrefix(s.Name, "gate ")
	for _, v := range c.Verdicts {
		if isGate && v.Gate == gate {
			return v.Status
		}
	}
	switch {
	case s.Failed:
		return string(report.Errored)
	case s.Cached:
		return "cached"
	case s.Waiting:
		return "waited"
	}
	return "done"
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
		return "", diag.Errorf(diag.Usage, "no %s is called %q: there is none", what, word)
	}
	return "", diag.Errorf(diag.Usage, "no %s is called %q", what, word).WithHint("%s", diag.DidYouMean(word, names))
}

// chooseLog chooses among the logs of the one cell that was named, or that runs.
func chooseLog(cells []cellLogs, o logsOptions) (oneLog, error) {
	if o.cell == "" {
		cells = slices.DeleteFunc(cells, func(c cellLogs) bool { return c.Status != runningState })
		if len(cells) == 0 {
			return oneLog{}, diag.Errorf(diag.Usage, "no cell runs in %s", o.out).WithHint("`builder logs --out %s` lists what there is", o.out)
		}
		if len(cells) > 1 {
			return oneLog{}, diag.Errorf(diag.Usage, "%d cells run in %s, and one can be followed", len(cells), o.out).WithHint("`builder logs --out %s` lists them", o.out)
		}
	}
	cell := cells[0]
	if len(cell.Steps) == 0 {
		return oneLog{}, diag.Errorf(diag.Usage, "%s has no logs: it has not begun", cell.Cell)
	}
	at := len(cell.Steps) - 1
	if cell.failed >= 0 {
		at = cell.failed
	}
	if o.step != "" {
		step, err := pick("step", o.step, cell.Steps, func(l oneLog) string { return l.Step })
		if err != nil {
			return oneLog{}, err
		}
		at = slices.IndexFunc(cell.Steps, func(l oneLog) bool { return l.Step == step })
	}
	log := cell.Steps[at]
	if log.Bytes == nil {
		return log, diag.Errorf(diag.Usage, "%s is not there", filepath.Join(o.out, log.Log)).
			WithHint("what was taken from a store or a registry was logged where it was built")
	}
	return log, nil
}

// listLogs prints the cells and their steps.
func listLogs(cells []cellLogs, out printer) {
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

// printLog prints a log and says on stderr which it is. On a terminal nothing of it
// can move the cursor; elsewhere it is as it was written.
func printLog(ctx context.Context, root *os.Root, log oneLog, o logsOptions, out printer) error {
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
	to := out.stdout
	if term.Width(out.stdout) > 0 {
		lines := term.Cleaned(out.stdout)
		defer lines.Flush()
		to = lines
	}
	if o.follow {
		return steplog.Follow(ctx, to, f)
	}
	_, err = io.Copy(to, f)
	return err
}
