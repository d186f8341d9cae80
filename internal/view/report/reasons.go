package report

import (
	"fmt"
	"slices"
	"strings"

	"builder/internal/view/term"
)

// Reason explains why cells did not pass: an error ended them, a gate refused them, or
// they were not built.
type Reason struct {
	Status Status
	What   string   // name of the gate, or class of the error
	Text   string   // evidence, or message
	Cause  []string // lines of the log, see [CellError]
	Remedy string   // what to do
	Cells  []string // ids of the affected cells
}

// Reasons returns the reasons why cells did not pass, the worst first. Cells with the
// same reason share one entry.
func Reasons(run Run) []Reason {
	var all []Reason
	known := map[[5]string]int{}
	for _, c := range run.Cells {
		for _, r := range reasonsOf(c) {
			same := [5]string{string(r.Status), r.What, r.Text, r.Remedy, strings.Join(r.Cause, "\n")}
			at, shared := known[same]
			if !shared {
				at = len(all)
				known[same], all = at, append(all, r)
			}
			all[at].Cells = append(all[at].Cells, c.ID)
		}
	}
	slices.SortStableFunc(all, func(a, b Reason) int { return slices.Index(worst, a.Status) - slices.Index(worst, b.Status) })
	return all
}

// worst orders the states of cells that did not pass, the worst first.
var worst = []Status{Errored, Fail, NotMeasured, Skipped}

// reasonsOf returns the reasons why one cell did not pass.
func reasonsOf(c Cell) (all []Reason) {
	switch {
	case c.Error != nil:
		all = append(all, Reason{
			Status: Errored, What: c.Error.Code, Text: strings.TrimPrefix(c.Error.Message, "building "+c.ID+": "),
			Cause: c.Error.Cause, Remedy: c.Error.Hint,
		})
	case StatusOf(c) == Skipped:
		return []Reason{{Status: Skipped, What: "not built", Text: "The run has no result for it.",
			Remedy: "Its run was stopped or killed, or wrote no result: read the log of its job."}}
	case len(c.Verdicts) == 0:
		return []Reason{{Status: NotMeasured, What: "gates", Text: "No gate checked it."}}
	}
	for _, v := range c.Verdicts {
		if v.Refuses() {
			all = append(all, Reason{Status: Status(v.Status.String()), What: v.Gate, Text: v.Evidence, Remedy: v.Remedy})
		}
	}
	return all
}

// maxHeadline bounds the reason in a headline, in columns.
const maxHeadline = 120

// Headline returns the result of a run in one line: all cells passed, or how many did
// not, with the first reason.
func Headline(run Run) string {
	if len(run.Cells) == 0 {
		return "The run has no cells"
	}
	count := func(n int, what string) string {
		if len(run.Cells) == 1 {
			return "1 cell " + what
		}
		return fmt.Sprintf("%d of %d cells %s", n, len(run.Cells), what)
	}
	counts := map[Status]int{}
	for _, c := range run.Cells {
		counts[StatusOf(c)]++
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{counts[Errored] + counts[Fail], "failed"}, {counts[NotMeasured], "not measured"}, {counts[Skipped], "not built"},
	} {
		switch {
		case p.n > 0 && len(parts) == 0:
			parts = append(parts, count(p.n, p.what))
		case p.n > 0:
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(parts) == 0 {
		return count(counts[Pass], "passed")
	}
	line, first := strings.Join(parts, ", "), Reasons(run)[0]
	why := first.Text
	switch {
	case first.Status == Skipped:
		return line
	case first.Status != Errored:
		why = first.What + ": " + why
	case len(first.Cause) > 0:
		why = first.Cause[0]
	}
	return line + ": " + term.Truncate(firstLine(term.Clean(why)), maxHeadline)
}
