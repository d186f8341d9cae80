package reportpage

import (
	"fmt"

	"builder/internal/gates/verdict"
	"builder/internal/view/report"
)

// change is a difference between two runs of one cell.
type change struct{ ID, What, Was, Is string }

// compare lists the differences: added and removed cells, changed statuses, changed
// bytes of artifacts, and times that doubled or halved.
func compare(before, now report.Run) []change {
	was := map[string]report.Cell{}
	for _, c := range before.Cells {
		was[c.ID] = c
	}
	var all []change
	for _, c := range now.Cells {
		old, known := was[c.ID]
		delete(was, c.ID)
		if !known {
			all = append(all, change{c.ID, "cell", "absent", string(report.StatusOf(c))})
			continue
		}
		all = append(all, compareCell(old, c)...)
	}
	for _, c := range before.Cells {
		if _, gone := was[c.ID]; gone {
			all = append(all, change{c.ID, "cell", string(report.StatusOf(c)), "absent"})
		}
	}
	return all
}

func compareCell(old, now report.Cell) []change {
	var all []change
	note := func(what, was, is string) {
		if was != is {
			all = append(all, change{now.ID, what, was, is})
		}
	}
	note("status", string(report.StatusOf(old)), string(report.StatusOf(now)))
	sums := map[string]string{}
	for _, a := range old.Artifacts {
		sums[a.Name] = a.SHA256
	}
	for _, a := range now.Artifacts {
		if sum, known := sums[a.Name]; known {
			note("sha256 of "+a.Name, sum, a.SHA256)
		}
	}
	verdicts := map[string]verdict.Status{}
	for _, v := range old.Verdicts {
		verdicts[v.Gate] = v.Status
	}
	for _, v := range now.Verdicts {
		if status, known := verdicts[v.Gate]; known {
			note("gate "+v.Gate, status.String(), v.Status.String())
		}
	}
	if before, after := float64(old.Seconds()), float64(now.Seconds()); old.From == now.From && min(before, after) > 5 && max(before, after) > 2*min(before, after) {
		note("time", fmt.Sprintf("%.0fs", before), fmt.Sprintf("%.0fs", after))
	}
	return all
}
