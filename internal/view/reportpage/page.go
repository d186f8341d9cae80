// Package reportpage shows a run as an HTML page. The page is one file, needs no
// network, is readable without its script, and can be printed and used with the
// keyboard. All its facts come from run.json and the logs beside it. Package report
// prints a run on a terminal.
package reportpage

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/atomicfile"
	"builder/internal/base/size"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/view/report"
	"builder/internal/view/term"
)

// Options add content to a page. All fields are optional.
type Options struct {
	Logs   fs.FS                    // opens the logs of steps by their names in the run, nothing else
	LogDir string                   // directory of the log names, in the form that Link takes
	Link   func(path string) string // path of a file relative to the page; "" if it does not exist
}

//go:embed page.tmpl
var pageText string

//go:embed page.css
var style string

var page = template.Must(template.New("page").Parse(pageText))

// Write writes the page of a run. Texts of the run and of its logs are escaped.
func Write(w io.Writer, run report.Run, o Options) error {
	return page.Execute(w, newView(run, o))
}

// view is the data of the template.
type view struct {
	Style    template.CSS
	Run      report.Run
	Headline string
	State    report.Status // the worst status of a cell
	Reasons  []reason
	Made     []cell           // the first passed cells
	Commands []report.Command // suggested next
	NotAsked []report.Command // of the first cell, if it passed
	Took     string
	Killed   bool // the run did not finish
	Counts   []count
	Cells    []cell
	o        Options
}

type count struct {
	Status report.Status
	N      int
}

// cell is one cell with the derived data of the page.
type cell struct {
	report.Cell
	Anchor   string
	Gates    string            // number of passed gates and of all gates
	Verdicts []verdict.Verdict // refusals first
	Commands []report.Command
	NotAsked []report.Command
	Logs     []excerpt
	Open     bool // with the details
}

func newView(run report.Run, o Options) view {
	v := view{
		Style: template.CSS(style), //nolint:gosec // our own files
		Run:   run, Killed: run.Finished.IsZero(), o: o,
	}
	if !v.Killed {
		v.Took = term.Duration(run.Finished.Sub(run.Started))
	}
	v.Counts = countStatuses(run.Cells)
	if len(v.Counts) > 0 {
		v.State = v.Counts[0].Status
	}
	for i, c := range run.Cells {
		v.Cells = append(v.Cells, newCell(c, fmt.Sprintf("cell-%d", i+1), o))
	}
	if len(v.Cells) > 0 {
		v.Cells[0].Open = v.Cells[0].Open || len(v.Cells) == 1
		v.NotAsked = v.Cells[0].NotAsked
	}
	for _, c := range v.Cells {
		if c.Status == report.Pass && len(c.Artifacts) > 0 && len(v.Made) < maxReasons {
			v.Made = append(v.Made, c)
		}
	}
	v.Headline, v.Reasons = report.Headline(run), v.newReasons()
	v.Commands = report.Next(run)
	return v
}

// Size returns the size of an artifact for people.
func (v view) Size(a artifact.Artifact) string { return size.Text(a.Size) }

func countStatuses(cells []report.Cell) []count {
	counts := map[report.Status]int{}
	for _, c := range cells {
		counts[report.StatusOf(c)]++
	}
	var all []count
	for _, s := range []report.Status{report.Errored, report.Fail, report.NotMeasured, report.Skipped, report.Pass} {
		if counts[s] > 0 {
			all = append(all, count{s, counts[s]})
		}
	}
	return all
}

func newCell(c report.Cell, anchor string, o Options) cell {
	c.Status = report.StatusOf(c)
	shown := cell{
		Cell: c, Anchor: anchor, Open: c.Status != report.Pass && c.Status != report.Skipped,
		Verdicts: slices.Clone(c.Verdicts), Commands: report.Commands(c), Logs: excerpts(c, o.Logs),
	}
	for _, text := range c.NotAsked {
		what, line, _ := strings.Cut(text, ": ")
		shown.NotAsked = append(shown.NotAsked, report.Command{Why: what, Line: line})
	}
	slices.SortStableFunc(shown.Verdicts, func(a, b verdict.Verdict) int { return rank(a) - rank(b) })
	passed := 0
	for _, v := range c.Verdicts {
		if v.Status == verdict.Pass {
			passed++
		}
	}
	shown.Gates = fmt.Sprintf("%d of %d", passed, len(c.Verdicts))
	return shown
}

// rank orders verdicts: refusals, then waived, then passed.
func rank(v verdict.Verdict) int {
	switch {
	case v.Refuses():
		return 0
	case v.Waiver != nil:
		return 1
	}
	return 2
}

// WriteFiles writes report.html, report.md and junit.xml beside run.json, for people
// and CI servers.
func WriteFiles(dir string, r report.Run, o Options) error {
	o.Link = func(path string) string { return seenFrom(dir, path) }
	page := atomicfile.Make(filepath.Join(dir, "report.html"), func(w io.Writer) error { return Write(w, r, o) })
	results, err := report.JUnit(r)
	if err == nil {
		err = atomicfile.Write(filepath.Join(dir, "junit.xml"), results)
	}
	return errors.Join(page, err, atomicfile.Write(filepath.Join(dir, "report.md"), []byte(report.Markdown(r))))
}

// seenFrom returns the relative slash-separated path from a directory to a regular
// file, or "" if no such file exists.
func seenFrom(dir, path string) string {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	from, err1 := filepath.Abs(dir)
	to, err2 := filepath.Abs(path)
	way, err3 := filepath.Rel(from, to)
	if errors.Join(err1, err2, err3) != nil {
		return ""
	}
	return filepath.ToSlash(way)
}
