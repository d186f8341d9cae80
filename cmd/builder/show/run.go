package show

import (
	"strings"

	"builder/internal/plan/stack"
	"builder/internal/view/report"
	"builder/internal/view/term"
)

// Run prints the cells and the files of passing cells, and as a note those of
// refused cells. For a wheelhouse it prints the requirements file, which lists the
// wheels.
func Run(out term.Printer, done report.Run) {
	out.Table(report.Summary(done))
	for _, c := range done.Cells {
		for _, a := range c.Artifacts {
			if strings.HasPrefix(a.Name, stack.Folder+"/") {
				continue
			}
			switch report.StatusOf(c) {
			case report.Pass:
				out.Say("%s", a.Path)
			case report.Fail, report.NotMeasured:
				out.Note("refused by its gates: %s", a.Path)
			}
		}
	}
}
