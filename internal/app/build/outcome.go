package build

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/plan/diagnose"
	"builder/internal/view/progress"
	"builder/internal/view/report"
	"builder/internal/view/term"
)

// cellOf converts an outcome to its form in run.json.
func (c *cellRun) cellOf(o run.Outcome) report.Cell {
	cell := report.Cell{
		ID: o.Entry.ID, Key: o.Entry.Key(), Recipe: o.Entry.Recipe, Axes: o.Entry.Axes, Recipes: c.Catalogue.Site, Set: c.set(),
		From: o.From, Engine: diag.Redact(o.Engine), Artifacts: o.Artifacts, Verdicts: o.Verdicts,
	}
	for _, s := range o.Steps {
		s.Log = run.LogOf(o.Entry.ID, s.Name)
		cell.Steps = append(cell.Steps, s)
	}
	if cell.From == report.Store || cell.From == report.Registry {
		cell.Taken = report.Seconds(o.Took.Seconds())
	}
	// A cell refused by a gate has a result, and its verdicts are the error.
	if code := diag.CodeOf(o.Err); o.Err != nil && !o.Skipped && (code != diag.Gate || len(o.Verdicts) == 0) {
		cell.Error = &report.CellError{
			Code: code.String(), Message: diag.Redact(term.Clean(o.Err.Error())), Hint: diag.Redact(firstHint(o.Err)), Cause: causeOf(o.Err),
		}
		if code == diag.Build {
			cell.Error.Shell = shellAt(o, c.Out)
		}
	}
	if report.StatusOf(cell) == report.Pass {
		c.addSigned(&cell)
	}
	return cell
}

// addSigned adds what the signed statements about a passed cell say, as far as they can be
// read.
func (c *cellRun) addSigned(cell *report.Cell) {
	a := cell.Artifacts[0]
	trust := signing.Trust{Keys: append(slices.Clone(c.trust.Keys), c.key.Public()), Now: time.Now()} // this run may have made the key
	b, err := attest.Read(a, trust)
	if err != nil || b.Provenance == nil {
		return
	}
	cell.Signers, cell.NotAsked = b.Keys, b.NotAsked(a, cell.Again())
}

// The bounds of the lines of a log in run.json: their number, and the columns of each.
const (
	maxCause     = 3
	maxCauseLine = 300
)

// causeOf returns the first lines of the log that explains an error.
func causeOf(err error) (lines []string) {
	for _, e := range diag.All(err) {
		for _, line := range e.Log {
			if len(lines) < maxCause {
				lines = append(lines, term.Truncate(diag.Redact(term.OneLine(line)), maxCauseLine))
			}
		}
	}
	return lines
}

func firstHint(err error) string {
	for _, e := range diag.All(err) {
		if e.Hint != "" {
			return e.Hint
		}
	}
	return ""
}

// showDone shows the result of a cell.
func showDone(p *progress.Display, c report.Cell) {
	status := report.StatusOf(c)
	var took report.Seconds
	if c.From == report.Build {
		took = c.Seconds()
	}
	good := status == report.Pass || status == report.Skipped
	p.CellDone(c.ID, string(status), good, took.Duration(), remark(c, status))
}

// remark returns a note on a cell: the source of its result, or the reason why it did
// not pass.
func remark(c report.Cell, status report.Status) string {
	switch {
	case c.Error != nil:
		return c.Error.Code
	case status == report.Pass && c.From != report.Build:
		return "from " + string(c.From)
	}
	var gates []string
	for _, v := range c.Verdicts {
		if v.Refuses() {
			gates = append(gates, "gate "+v.Gate)
		}
	}
	return strings.Join(gates, ", ")
}

// diagnosed returns the error of a cell with the diagnoses of known failures. A nil
// examiner knows none.
func diagnosed(o run.Outcome, out string, known func() *diagnose.Examiner) error {
	all := diag.All(o.Err)
	for _, err := range all {
		if err.Code != diag.Build || len(o.Steps) == 0 {
			continue
		}
		err.LogPath = filepath.Join(out, run.LogOf(o.Entry.ID, o.Steps[len(o.Steps)-1].Name))
		err.Log = diagnose.Meaningful(err.LogPath, err.Log)
		if examiner := known(); examiner != nil {
			if d, ok := examiner.Cause(context.Background(), err.LogPath); ok { // diagnose the log even after the run was interrupted
				err.Hint = d.Hint()
			}
		}
		if open := shellAt(o, out); open != "" {
			err.Hint = strings.TrimPrefix(fmt.Sprintf("%s; `%s` opens a shell where it failed; --to DIR keeps your changes there", err.Hint, open), "; ")
		}
	}
	return diag.Joined(all)
}
