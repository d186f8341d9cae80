package show

import (
	"builder/internal/machine/doctor"
	"builder/internal/view/term"
)

// Doctor prints a table by purpose, the details and the remedies.
func Doctor(out term.Printer, r doctor.Report) {
	width := term.Width(out.Stdout)
	var rows [][]string
	last := doctor.Purpose("")
	for _, c := range r.Checks {
		purpose := ""
		if c.For != last {
			purpose, last = string(c.For), c.For
		}
		rows = append(rows, []string{purpose, c.Name, c.Verdict.String(), c.Found})
	}
	out.Table([]string{"for", "check", "verdict", "found"}, rows)
	for _, c := range r.Checks {
		if len(c.Detail) == 0 {
			continue
		}
		out.Say("\n%s", c.Name)
		for _, line := range c.Detail {
			term.Indented(out.Stdout, width, line)
		}
	}
	printRemedies(out, width, r)
}

func printRemedies(out term.Printer, width int, r doctor.Report) {
	said := false
	for _, c := range r.Checks {
		if c.Remedy == "" {
			continue
		}
		if !said {
			out.Say("\nwhat to do")
			said = true
		}
		term.Labelled(out.Stdout, width, c.Name, c.Remedy)
	}
}
