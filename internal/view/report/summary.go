package report

import (
	"cmp"
	"fmt"
	"strings"
)

// Summary returns the table at the end of a run: a header and one row per cell.
func Summary(run Run) (header []string, rows [][]string) {
	for _, c := range run.Cells {
		rows = append(rows, []string{c.ID, state(c), dash(string(c.From)), dash(wheel(c)), dash(gates(c)), took(c)})
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

// wheel returns the name of the first artifact, the main one for users: a wheel, an
// archive or the manifest of a wheelhouse.
func wheel(c Cell) string {
	if len(c.Artifacts) > 0 {
		return c.Artifacts[0].Name
	}
	return ""
}

// gates counts the verdicts. Waived and failed gates are listed by name at the end.
func gates(c Cell) string {
	counts := map[string]int{}
	var waived, failed []string
	for _, v := range c.Verdicts {
		switch v.Status {
		case verdictPass:
			counts[v.Status]++
		case verdictWaived:
			waived = append(waived, waiver(v))
		case verdictFail:
			failed = append(failed, v.Gate)
		default:
			counts[string(NotMeasured)]++
		}
	}
	var parts []string
	for _, status := range []string{verdictPass, string(NotMeasured)} {
		if n := counts[status]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	for _, list := range []struct {
		status string
		names  []string
	}{{verdictWaived, waived}, {verdictFail, failed}} {
		if len(list.names) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s: %s", len(list.names), list.status, strings.Join(list.names, ", ")))
		}
	}
	return strings.Join(parts, ", ")
}

func waiver(v Verdict) string {
	if v.Waiver == nil {
		return v.Gate
	}
	return fmt.Sprintf("%s until %s", v.Gate, v.Waiver.Until)
}

// took returns the time in this run and, for a stored result, also the time of its
// build.
func took(c Cell) string {
	text := fmt.Sprintf("%.1fs", float64(c.Seconds()))
	if c.Taken > 0 && c.From != Build && c.Built() > 0 {
		text += fmt.Sprintf(", built in %.1fs", float64(c.Built()))
	}
	return text
}

func dash(s string) string { return cmp.Or(s, "-") }
