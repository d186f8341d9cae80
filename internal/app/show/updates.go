package show

import (
	"fmt"
	"strings"

	"builder/internal/app"
	"builder/internal/view/term"
)

// Updates prints new releases, weaknesses and the proposal.
func Updates(out term.Printer, u app.Updates) {
	var rows [][]string
	for _, n := range u.New {
		adds := fmt.Sprintf("%d cells", n.Cells)
		if n.Cells == 0 {
			adds = "no cell: " + strings.Join(n.Because, "; ")
		}
		rows = append(rows, []string{n.Recipe, "--" + n.Axis + " " + n.Value, n.Released, adds})
	}
	if len(rows) > 0 {
		out.Table([]string{"recipe", "new value", "released", "adds"}, rows)
	} else {
		out.Say("no upstream that answered has a new release from before %s", u.Before)
	}
	for _, x := range u.Unasked {
		out.Say("not asked: %s --%s: %s: %s", x.Recipe, x.Axis, x.From, x.Why)
	}
	for _, w := range u.Weak {
		fixed := "no release mends it"
		if w.Fixed != "" {
			fixed = "mended in " + w.Fixed
		}
		out.Say("weakness: %s locks %s %s: %s %s: %s (%s)", w.Recipe, w.Project, w.Version, w.ID, w.Alias, w.Summary, fixed)
	}
	if p := u.Proposal; p != nil {
		out.Say("\nproposal %s: read %s/%s, then `builder plan RECIPE --recipes %s`", p.Directory, p.Directory, app.ReportFile, p.Directory)
		for _, v := range p.Values {
			if v.Lacks != "" {
				out.Say("  not proposed: %s --%s %s: %s", v.Recipe, v.Axis, v.Value, v.Lacks)
				continue
			}
			out.Say("  %s --%s %s: %d pins changed", v.Recipe, v.Axis, v.Value, v.Pins)
		}
		for _, text := range p.Patches {
			out.Say("  patches %s", text)
		}
		for _, cell := range p.Cells {
			out.Say("  build   builder run %s", cell)
		}
	}
}
