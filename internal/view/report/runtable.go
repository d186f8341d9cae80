package report

import (
	"cmp"
	"fmt"
	"strings"

	"builder/internal/gates/verdict"
)

// Summary returns the table at the end of a run: a header and one row per cell.
func Summary(run Run) (header []string, rows [][]string) {
	for _, c := range run.Cells {
		rows = append(rows, []string{c.ID, state(c), dash(string(c.From)), dash(mainName(c)), dash(gates(c)), c.Seconds().String()})
	}
	return []string{"cell", "status", "from", "wheel", "gates", "time"}, rows
}

// state returns the status, with the class of an error.
func state(c Cell) string {
	if c.Error != nil && c.Error.Code != "" {
		return fmt.Sprintf("%s: %s", Errored, c.Error.Code)
	}
	return string(StatusOf(c))
}

// mainName returns the name of the first artifact, the main one for users: a wheel
// or an archive.
func mainName(c Cell) string {
	if len(c.Artifacts) > 0 {
		return c.Artifacts[0].Name
	}
	return ""
}

// gates counts the verdicts. Waived and failed gates are listed by name at the end.
func gates(c Cell) string {
	named := map[verdict.Status][]string{}
	for _, v := range c.Verdicts {
		name := v.Gate
		if v.Status == verdict.Waived && v.Waiver != nil {
			name += " until " + v.Waiver.Until
		}
		named[v.Status] = append(named[v.Status], name)
	}
	var parts []string
	for _, status := range []verdict.Status{verdict.Pass, verdict.NotMeasured, verdict.Waived, verdict.Fail} {
		names := named[status]
		if len(names) == 0 {
			continue
		}
		part := fmt.Sprintf("%d %s", len(names), status)
		if status == verdict.Waived || status == verdict.Fail {
			part += ": " + strings.Join(names, ", ")
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

func dash(s string) string { return cmp.Or(s, "-") }
