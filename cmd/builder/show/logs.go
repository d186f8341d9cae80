package show

import (
	"fmt"

	"builder/internal/build/runlog"
	"builder/internal/view/report"
	"builder/internal/view/term"
)

// Logs prints the steps of each cell, with the size of their logs.
func Logs(out term.Printer, cells []runlog.Cell) {
	for _, c := range cells {
		status := c.Status
		if status == string(report.Skipped) && len(c.Steps) > 0 {
			status = "no result: its run was killed" // a cell that was not started has no steps
		}
		out.Say("%s: %s", term.Clean(c.Cell), status)
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
			out.Table([]string{"step", "verdict", "time", "log"}, rows)
		}
	}
}
