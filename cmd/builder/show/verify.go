package show

import (
	"strings"

	"builder/internal/app/judge"
	"builder/internal/view/term"
)

// Verified prints the checks of each artifact.
func Verified(out term.Printer, r judge.VerifyReport) {
	for _, a := range r.Artifacts {
		out.Say("%s sha256:%s", a.Name, a.SHA256)
		var rows [][]string
		for _, c := range a.Checks {
			status, text := "pass", c.Seen
			if len(c.Wrong) > 0 {
				status, text = "fail", strings.Join(c.Wrong, "; ")
			}
			rows = append(rows, []string{c.Name, status, text})
		}
		out.Table([]string{"check", "status", "seen"}, rows)
	}
}
