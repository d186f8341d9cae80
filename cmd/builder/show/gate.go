package show

import (
	"fmt"
	"strings"

	"builder/internal/app/judge"
	"builder/internal/files/inspect"
	"builder/internal/view/term"
)

// printFacts prints the facts of a file.
func printFacts(out term.Printer, is inspect.Report) {
	var rows [][]string
	for _, f := range is.Facts {
		value := strings.Join(f.Values, ", ")
		if f.Claim != "" && f.Claim != value {
			value += fmt.Sprintf(" (%s by its version)", f.Claim)
		}
		rows = append(rows, []string{f.Name, value, strings.Join(f.Because, "; ")})
	}
	out.Table([]string{is.Kind, "is", "seen"}, rows)
}

// Gated prints the verdicts about each artifact.
func Gated(out term.Printer, r judge.GateReport) {
	for _, a := range r.Artifacts {
		if a.SHA256 == "" { // an environment
			out.Say("%s", a.Name)
		} else {
			out.Say("%s sha256:%s", a.Name, a.SHA256)
		}
		if a.Is != nil {
			printFacts(out, *a.Is)
		}
		if len(a.Verdicts) == 0 {
			continue
		}
		var rows [][]string
		for _, v := range a.Verdicts {
			from := "now"
			if a.Attached[v.Gate] {
				from = "attached"
			}
			rows = append(rows, []string{v.Gate, v.Status.String(), from, fmt.Sprintf("%.1fs", v.Seconds), v.Evidence})
		}
		out.Table([]string{"gate", "status", "from", "time", "evidence"}, rows)
	}
}
