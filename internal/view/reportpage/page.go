// Package reportpage shows a run as a page: one file that needs no other and no
// network, can be read without its script, printed, and used with the keyboard.
// It is a view of run.json and says nothing that does not stand there or in the
// logs beside it. What a terminal shows of a run is said by package report.
package reportpage

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"builder/internal/files/artifact"
	"builder/internal/machine/curve"
	"builder/internal/view/chart"
	"builder/internal/view/report"
)

// Options say what a page shows beside the run. All may be missing.
type Options struct {
	Logs   fs.FS                    // opens the logs of steps by their names in the run, and nothing else
	LogDir string                   // directory that the names of logs begin in, as Link takes it
	Link   func(path string) string // where a file lies as seen from the page; "" if it is not there
	Before *report.Run              // an earlier run, to compare with
}

//go:embed page.tmpl
var pageText string

//go:embed page.css
var style string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"percent": percent, "size": curve.HumanSize,
}).Parse(pageText + chart.Template))

// Write writes the page of a run. Whatever the run or its logs say is text there.
func Write(w io.Writer, run report.Run, o Options) error {
	return page.Execute(w, newView(run, o))
}

// percent is a place or a length in a bar, as a style wants it.
func percent(v float64) template.CSS { return template.CSS(fmt.Sprintf("%.3f%%", 100*v)) } //nolint:gosec // a number

// view is what the template shows.
type view struct {
	Style    template.CSS
	Run      report.Run
	Headline string
	State    report.Status // the worst of a cell
	Reasons  []reason
	Commands []command // to type next
	Took     string
	Killed   bool // the run did not come to its end
	Counts   []count
	Same     []axis   // with one value in all cells
	Axes     []axis   // that tell the cells apart
	Engines  []engine // that built cells, where there are several
	Grid     grid
	Cells    []cell
	Timeline timeline
	Changes  []change
	Against  string // when the run began that this one is compared with
}

type count struct {
	Status report.Status
	N      int
}

type axis struct {
	Name   string
	Values []string
}

// cell is one cell with all that is known of it.
type cell struct {
	report.Cell
	Anchor   string
	Values   []string // of the axes that vary, in their order
	Gates    string   // how many passed, of all
	Took     string
	Verdicts []report.Verdict // those that refuse first
	Steps    []step
	Files    []file
	Commands []command
	Logs     []excerpt
	Refused  bool

	Bandwidths []bandwidth
}

type step struct {
	report.Step
	Took string
	File reference // its log
}

type file struct {
	artifact.Artifact
	File reference
}

func newView(run report.Run, o Options) view {
	v := view{
		Style: template.CSS(style + chart.Style), //nolint:gosec // our own files
		Run:   run, Killed: run.Finished.IsZero(), Timeline: newTimeline(run), Engines: newEngines(run.Cells),
	}
	if !v.Killed {
		v.Took = human(run.Finished.Sub(run.Started))
	}
	v.Counts = countStatuses(run.Cells)
	if len(v.Counts) > 0 {
		v.State = v.Counts[0].Status
	}
	v.Same, v.Axes = splitAxes(run.Cells)
	for i, c := range run.Cells {
		v.Cells = append(v.Cells, newCell(c, fmt.Sprintf("cell-%d", i+1), v.Axes, o))
	}
	v.Headline, v.Reasons = report.Headline(run), newReasons(run, v.Cells)
	v.Commands = next(v.Cells)
	v.Grid = newGrid(v.Axes, v.Cells)
	if o.Before != nil {
		v.Against, v.Changes = o.Before.Started.UTC().Format(time.DateTime), compare(*o.Before, run)
	}
	return v
}

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

// splitAxes tells the axes that are the same everywhere from those that tell cells
// apart.
func splitAxes(cells []report.Cell) (same, apart []axis) {
	values := map[string]map[string]bool{}
	for _, c := range cells {
		for name, value := range c.Axes {
			if values[name] == nil {
				values[name] = map[string]bool{}
			}
			values[name][value] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		a := axis{name, slices.Sorted(maps.Keys(values[name]))}
		if len(a.Values) == 1 {
			same = append(same, a)
		} else {
			apart = append(apart, a)
		}
	}
	return same, apart
}

func newCell(c report.Cell, anchor string, axes []axis, o Options) cell {
	c.Status = report.StatusOf(c)
	shown := cell{
		Cell: c, Anchor: anchor, Refused: c.Status != report.Pass && c.Status != report.Skipped,
		Verdicts: slices.Clone(c.Verdicts), Commands: commandsOf(c), Logs: excerpts(c, o.Logs),
	}
	slices.SortStableFunc(shown.Verdicts, func(a, b report.Verdict) int { return rank(a) - rank(b) })
	for _, a := range axes {
		shown.Values = append(shown.Values, c.Axes[a.Name])
	}
	passed := 0
	for _, v := range c.Verdicts {
		if v.Status == "pass" {
			passed++
		}
		shown.Bandwidths = append(shown.Bandwidths, newBandwidths(v)...)
	}
	shown.Gates = fmt.Sprintf("%d of %d", passed, len(c.Verdicts))
	for _, s := range c.Steps {
		shown.Steps = append(shown.Steps, step{s, humanSeconds(s.Seconds), o.linked(s.Log, path.Join(o.LogDir, s.Log))})
	}
	for _, a := range c.Artifacts {
		shown.Files = append(shown.Files, file{a, o.linked(a.Name, a.Path)})
	}
	shown.Took = humanSeconds(c.Seconds())
	if c.Taken > 0 && c.From != report.Build && c.Built() > 0 {
		shown.Took += ", built in " + humanSeconds(c.Built())
	}
	return shown
}

// rank orders verdicts by what is to be done about them: those that refuse, those that
// are waived, those that passed.
func rank(v report.Verdict) int {
	switch {
	case v.Refuses():
		return 0
	case v.Waiver != nil:
		return 1
	}
	return 2
}

// Label is the cell by what tells it apart, or by its id where nothing does.
func (c cell) Label() string { return cmp.Or(strings.Join(c.Values, " "), c.ID) }

func humanSeconds(s report.Seconds) string {
	return human(time.Duration(float64(s) * float64(time.Second)))
}

// human writes a duration with two units at most: 0.4s, 12s, 3m 5s, 2h 10m.
func human(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh %dm", int(d.Hours()), int(d.Minutes())%60)
}
