package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/view/report"
	"builder/internal/view/reportpage"
	"builder/internal/view/term"
)

// reportFormats are the words that report's --format takes, the default first.
var reportFormats = []string{"text", "json", "markdown"}

// maxMatrix bounds the file of --matrix.
const maxMatrix = 16 << 20

const mergeDescription = `DIR is where a run wrote its results: it holds run.json. The cells of all runs
become one, sorted by id. Of a cell that several runs tell of the worst counts. With
--matrix the cells that builder matrix printed, as json or github, are demanded: one
that no run tells of was not built.

Runs that contradict each other are refused, and nothing is written: the same cell
with another key is exit 3, with other bytes exit 6. Otherwise the exit code is that
of one run that had built all cells: 0 only if every cell passed every gate.

markdown is a page for GITHUB_STEP_SUMMARY.`

func reportCommand(out printer) *cli.Command {
	return &cli.Command{
		Name: "report", Usage: "what runs say together",
		OnUsageError: usageError, Action: unknownCommand, HideHelpCommand: true,
		Subcommands: []*cli.Command{{
			Name: "merge", Usage: "join the results of several runs into one", ArgsUsage: "DIR…",
			Description: mergeDescription,
			Flags:       mergeFlags(), OnUsageError: usageError, HideHelpCommand: true,
			Action: func(c *cli.Context) error {
				o, err := readMergeOptions(c)
				if err != nil {
					return err
				}
				return doMerge(o, out)
			},
		}},
	}
}

func mergeFlags() []cli.Flag {
	return []cli.Flag{
		jsonFlag(),
		&cli.StringFlag{Name: "format", Value: reportFormats[0], Usage: "print the result as `FORMAT`: " + strings.Join(reportFormats, ", ")},
		&cli.StringFlag{Name: "matrix", Usage: "demand the cells in `FILE`, as builder matrix prints them"},
		&cli.StringFlag{Name: "out", Usage: "write run.json, report.html, report.md and junit.xml into `DIR`; nothing is written without"},
		&cli.StringFlag{Name: "against", Usage: "say in report.html what has changed since the run in `DIR`"},
	}
}

// mergeOptions is what the flags of report merge say.
type mergeOptions struct {
	dirs    []string
	format  string
	matrix  string
	out     string
	against string
}

func readMergeOptions(c *cli.Context) (mergeOptions, error) {
	o := mergeOptions{dirs: c.Args().Slice(), format: c.String("format"), matrix: c.String("matrix"), out: c.String("out"), against: c.String("against")}
	var faults []error
	if len(o.dirs) == 0 {
		faults = append(faults, diag.Errorf(diag.Usage, "%s: name the directories of runs", c.Command.HelpName).
			WithHint("%s runs/* --out report", c.Command.HelpName))
	}
	if !slices.Contains(reportFormats, o.format) {
		faults = append(faults, diag.Errorf(diag.Usage, "--format: %q is not known", o.format).WithHint("%s", diag.DidYouMean(o.format, reportFormats)))
	}
	if c.Bool("json") {
		if c.IsSet("format") && o.format != "json" {
			faults = append(faults, diag.Errorf(diag.Usage, "--json and --format %s contradict each other", o.format).WithHint("give one of them"))
		}
		o.format = "json"
	}
	return o, errors.Join(append(faults, checkMergeOut(o))...)
}

// checkMergeOut keeps a run from being replaced by what it is a part of.
func checkMergeOut(o mergeOptions) error {
	into, err := os.Stat(o.out)
	if o.out == "" || err != nil {
		return nil
	}
	for _, dir := range o.dirs {
		if info, err := os.Stat(dir); err == nil && os.SameFile(into, info) {
			return diag.Errorf(diag.Usage, "--out: %s is one of the runs, which the result would replace", o.out).WithHint("name another directory")
		}
	}
	return checkOut(o.out)
}

// doMerge joins the runs, writes and prints the result, and returns what a run of
// all their cells would have returned.
func doMerge(o mergeOptions, out printer) error {
	expected, err := expectedCells(o.matrix)
	faults := []error{err}
	var parts []report.Part
	for _, dir := range o.dirs {
		part, err := report.Open(dir)
		parts, faults = append(parts, part), append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	merged, err := report.Merge(parts, expected)
	if err != nil {
		return err
	}
	if o.out != "" {
		if err := writeMerged(o, merged); err != nil {
			return err
		}
	}
	return errors.Join(printMerged(merged, o.format, out), report.Err(merged))
}

func writeMerged(o mergeOptions, merged report.Run) error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return diag.Errorf(diag.Usage, "--out: %w", err)
	}
	if err := report.Write(filepath.Join(o.out, "run.json"), merged); err != nil {
		return err
	}
	page := reportpage.Options{Logs: below(o.dirs)}
	if o.against != "" {
		before, err := report.Open(o.against)
		if err != nil {
			return diag.Errorf(diag.Usage, "--against: %w", err)
		}
		page.Before = &before.Run
	}
	return writeViews(o.out, merged, page)
}

// below is a file system of what lies in some directories, by the names that
// [report.Open] gives it. Links do not lead out of them: runs come from anywhere.
type below []string

// Open implements [fs.FS].
func (dirs below) Open(name string) (fs.File, error) {
	for _, dir := range dirs {
		inside, err := filepath.Rel(dir, name)
		if err != nil || !filepath.IsLocal(inside) {
			continue
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		return root.Open(inside)
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func printMerged(merged report.Run, format string, out printer) error {
	switch format {
	case "json":
		return printJSON(out, merged)
	case "markdown":
		out.say("%s", strings.TrimSuffix(report.Markdown(merged), "\n"))
		return nil
	}
	header, rows := report.Summary(merged)
	term.Table(out.stdout, term.Width(out.stdout), header, rows)
	return nil
}

// expectedCells reads what builder matrix printed as json or github.
func expectedCells(file string) ([]report.Cell, error) {
	if file == "" {
		return nil, nil
	}
	fault := func(err error) error {
		return diag.Errorf(diag.Usage, "--matrix: %s: %w", file, err).WithHint("write it with builder matrix, --format json or github")
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, diag.Errorf(diag.Usage, "--matrix: %w", err)
	case !info.Mode().IsRegular() || info.Size() > maxMatrix:
		return nil, fault(fmt.Errorf("not a regular file of at most %d bytes", maxMatrix))
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fault(err)
	}
	cells, err := matrixCells(data)
	if err != nil {
		return nil, fault(err)
	}
	var expected []report.Cell
	for _, c := range cells {
		if c.ID == "" {
			return nil, fault(errors.New("a cell has no id"))
		}
		expected = append(expected, report.Cell{ID: c.ID, Recipe: c.Recipe, Axes: c.Axes})
	}
	return expected, nil
}

// matrixCells decodes a list of cells, or one below include. Of a cell a matrix
// states id, recipe and axes.
func matrixCells(data []byte) ([]report.Cell, error) {
	var cells []report.Cell
	if err := json.Unmarshal(data, &cells); err == nil {
		return cells, nil
	}
	var github struct {
		Include *[]report.Cell `json:"include"`
	}
	if err := json.Unmarshal(data, &github); err != nil {
		return nil, err
	}
	if github.Include == nil {
		return nil, errors.New("it holds no cells")
	}
	return *github.Include, nil
}
