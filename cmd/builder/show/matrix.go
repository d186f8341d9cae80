package show

import (
	"builder/internal/plan/ci"
	"builder/internal/plan/matrix"
	"builder/internal/view/term"
)

// Jobs prints the jobs of a matrix.
func Jobs(out term.Printer, jobs []ci.Job) {
	var rows [][]string
	for _, j := range jobs {
		rows = append(rows, []string{j.ID, j.Recipe, matrix.Pairs(j.Axes)})
	}
	out.Table([]string{"cell", "recipe", "axes"}, rows)
}
