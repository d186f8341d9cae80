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
		Action: func(c *cli.Context) error {
			r, format, err := readMerge(c)
			if err != nil {
				return err
			}
			merged, err := reportpage.Merge(r)
			if merged.Schema == 0 {
				return err
			}
			return errors.Join(printMerged(merged, format, out), err)
		},
	}
}

func readMerge(c *cli.Context) (reportpage.MergeRequest, string, error) {
	r := reportpage.MergeRequest{Dirs: c.Args().Slice(), Matrix: c.String("matrix"), Out: c.String("out")}
	format, err := readFormat(c, mergeFormats)
	errs := []error{err, checkMergeOut(r)}
	if len(r.Dirs) == 0 {
		errs = append(errs, diag.Errorf(diag.Usage, "%s: name the directories of runs", c.Command.HelpName).WithHint("%s runs/* --out report", c.Command.HelpName))
	}
	return r, format, errors.Join(errs...)
}

// checkMergeOut returns an error if the output would replace one of the merged runs.
func checkMergeOut(r reportpage.MergeRequest) error {
	into, err := os.Stat(r.Out)
	if r.Out == "" || err != nil {
		return nil
	}
	for _, dir := range r.Dirs {
		if info, err := os.Stat(dir); err == nil && os.SameFile(into, info) {
			return diag.Errorf(diag.Usage, "--out: %s is one of the runs, and the result would replace it", r.Out).WithHint("name another directory")
		}
	}
	return home.CheckOut(r.Out)
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
