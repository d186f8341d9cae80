package runlog

import (
	"os"
	"path/filepath"
	"slices"

	"builder/internal/base/diag"
	"builder/internal/view/report"
)

// A Request names a run and, by any part of their names, a cell and a step.
type Request struct {
	Out, Cell, Step string
}

// Open surveys the logs of a run, or of the named cell only. It also returns the root
// of the results; the caller closes it.
func Open(r Request) (*os.Root, []Cell, error) {
	run, err := report.Read(filepath.Join(r.Out, "run.json"))
	if err != nil {
		return nil, nil, diag.Errorf(diag.Usage, "--out: %w", err).WithHint("name the output directory of a run")
	}
	root, err := os.OpenRoot(r.Out)
	if err != nil {
		return nil, nil, diag.Errorf(diag.Usage, "--out: %w", err)
	}
	cells := Survey(root, run)
	if r.Cell == "" {
		return root, cells, nil
	}
	id, err := FindByName("cell", r.Cell, cells, func(c Cell) string { return c.Cell })
	if err != nil {
		root.Close()
		return nil, nil, err
	}
	return root, slices.DeleteFunc(cells, func(c Cell) bool { return c.Cell != id }), nil
}

// Choose chooses a log of the named cell, or of the one running cell.
func Choose(cells []Cell, r Request) (Log, error) {
	if r.Cell == "" {
		cells = slices.DeleteFunc(cells, func(c Cell) bool { return c.Status != Running })
		if len(cells) == 0 {
			return Log{}, diag.Errorf(diag.Usage, "no cell runs in %s", r.Out).WithHint("list the logs with `builder logs --out %s`", r.Out)
		}
		if len(cells) > 1 {
			return Log{}, diag.Errorf(diag.Usage, "%d cells run in %s, and only one can be followed", len(cells), r.Out).WithHint("list the cells with `builder logs --out %s`, and name one", r.Out)
		}
	}
	cell := cells[0]
	if len(cell.Steps) == 0 {
		return Log{}, diag.Errorf(diag.Usage, "%s has no logs: its build has not begun", cell.Cell)
	}
	at := len(cell.Steps) - 1
	if cell.Failed >= 0 {
		at = cell.Failed
	}
	if r.Step != "" {
		step, err := FindByName("step", r.Step, cell.Steps, func(l Log) string { return l.Step })
		if err != nil {
			return Log{}, err
		}
		at = slices.IndexFunc(cell.Steps, func(l Log) bool { return l.Step == step })
	}
	log := cell.Steps[at]
	if log.Bytes == nil {
		return log, diag.Errorf(diag.Usage, "%s does not exist", filepath.Join(r.Out, log.Log)).
			WithHint("this run did not build the cell: a stored or published result comes without logs. They were in the --out directory of the run that built it, until another run of the cell began there")
	}
	return log, nil
}
