package report

import (
	"cmp"
	"fmt"
	"strings"
)

// Summary is the table at the end of a run: a header and one row for each cell.
func Summary(run Run) (header []string, rows [][]string) {
	for _, c := range run.Cells {
		rows = append(rows, []string{c.ID, state(c), dash(string(c.From)), dash(wheel(c)), dash(gates(c)), took(c)})
	}
	return []string{"cell", "status", "from", "wheel", "gates", "time"}, rows
}

// state names the class of an error, which says where to look.
func state(c Cell) string {
	if c.Error != nil && c.Error.Code != "" {
		return fmt.Sprintf("%s: %s", Errored, c.Error.Code)
	}
	return string(StatusOf(c))
}

// wheel is the file that users want, which comes first: a wheel, an archive or the
// manifest of a wheelhouse.
func wheel(c Cell) string {
	if len(c.Artifacts) > 0 {
		return c.Artifacts[0].Name
	}
	return ""
}

// gates counts the verdicts; those that were waived or failed have names, and
// come last because they are lists.
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

// took is the time of now, and of a stored result that of then too.
func took(c Cell) string {
	text := fmt.Sprintf("%.1fs", float64(c.Seconds()))
	if c.Taken > 0 && c.From != Build && c.Built() > 0 {
		text += fmt.Sprintf(", built in %.1fs", float64(c.Built()))
	}
	return text
}

func dash(s string) string { return cmp.Or(s, "-") }
