package main

import (
	"errors"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app/home"
	"builder/internal/base/diag"
	"builder/internal/view/report"
	"builder/internal/view/reportpage"
	"builder/internal/view/term"
)

// mergeFormats are the values of --format, the default first.
var mergeFormats = []string{"text", "json", "markdown"}

const mergeDescription = `DIR is the output directory of a run, with its run.json. The cells of all runs are
merged into one list, sorted by id. If several runs have the same cell, the worst
result counts. --matrix requires the cells printed by builder matrix, as json or
github: a missing one counts as not built.

Runs that contradict each other are refused, and nothing is written: the same cell
with another key is exit 3, with other bytes exit 6. Otherwise the exit code is the
same as for one run of all cells: 0 only if every cell passed every gate.

markdown is a page for GITHUB_STEP_SUMMARY.`

func mergeCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "merge", Usage: "join the results of several runs into one", ArgsUsage: "DIR…",
		Description: mergeDescription,
		Flags: []cli.Flag{
			formatFlag("print the result as", mergeFormats),
			&cli.StringFlag{Name: "matrix", Usage: "require the cells in `FILE`, as printed by builder matrix"},
			&cli.StringFlag{Name: "out", Usage: "write run.json, report.html, report.md and junit.xml into `DIR`; without it write no file"},
		},
		OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			o, err := readMerge(c)
			if err != nil {
				return err
			}
			merged, err := reportpage.Merge(o.MergeRequest)
			if merged.Schema == 0 {
				return err
			}
			return errors.Join(printMerged(merged, o.format, out), err)
		},
	}
}

// mergeOptions are the flags of matrix merge.
type mergeOptions struct {
	reportpage.MergeRequest
	format string
}

func readMerge(c *cli.Context) (mergeOptions, error) {
	o := mergeOptions{
		MergeRequest: reportpage.MergeRequest{Dirs: c.Args().Slice(), Matrix: c.String("matrix"), Out: c.String("out")},
	}
	var errs [3]error
	o.format, errs[0] = readFormat(c, mergeFormats)
	if len(o.Dirs) == 0 {
		errs[1] = diag.Errorf(diag.Usage, "%s: name the directories of runs", c.Command.HelpName).WithHint("%s runs/* --out report", c.Command.HelpName)
	}
	errs[2] = checkMergeOut(o)
	return o, errors.Join(errs[:]...)
}

// checkMergeOut returns an error if the output would replace one of the merged runs.
func checkMergeOut(o mergeOptions) error {
	into, err := os.Stat(o.Out)
	if o.Out == "" || err != nil {
		return nil
	}
	for _, dir := range o.Dirs {
		if info, err := os.Stat(dir); err == nil && os.SameFile(into, info) {
			return diag.Errorf(diag.Usage, "--out: %s is one of the runs, and the result would replace it", o.Out).WithHint("name another directory")
		}
	}
	return home.CheckOut(o.Out)
}

func printMerged(merged report.Run, format string, out term.Printer) error {
	switch format {
	case "json":
		return out.JSON(merged)
	case "markdown":
		out.Say("%s", strings.TrimSuffix(report.Markdown(merged), "\n"))
		return nil
	}
	out.Table(report.Summary(merged))
	return nil
}
