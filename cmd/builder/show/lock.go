package show

import (
	"cmp"
	"fmt"
	"slices"

	"builder/internal/app/plan"
	"builder/internal/plan/lock"
	"builder/internal/view/term"
)

// Lock prints the changes of a lock.
func Lock(out term.Printer, r plan.LockResult) {
	if r.Checked {
		printLockCheck(out, r)
		return
	}
	if rows := lockRows(r.Changes); len(rows) > 0 {
		out.Table([]string{"kind", "name", "was", "is"}, rows)
	}
	if r.Wrote == "" {
		out.Say("nothing changed")
	} else {
		out.Say("wrote %s", r.Wrote)
	}
}

// printLockCheck prints the locked cells and the needs of the others.
func printLockCheck(out term.Printer, r plan.LockResult) {
	cells := fmt.Sprintf("%d cells", len(r.Cells))
	if len(r.Cells) == 1 {
		cells = r.Cells[0]
	}
	if len(r.Unstated) == 0 {
		out.Say("the lock of %s pins everything for %s", r.Recipe, cells)
		return
	}
	out.Say("the lock of %s pins everything for all of %s except the cells that need", r.Recipe, cells)
	for _, why := range r.Unstated {
		out.Say("  %s", why)
	}
}

// lockRows returns a row for each change. Many new pins of a kind, such as the Debian
// packages of a first lock, share one row; the lock and --json list them.
func lockRows(changes []lock.PinChange) [][]string {
	added := map[string]int{}
	for _, c := range changes {
		if c.Was == "" {
			added[c.Kind]++
		}
	}
	var rows [][]string
	for _, c := range changes {
		n := added[c.Kind]
		if c.Was != "" || n < manyPins {
			rows = append(rows, []string{c.Kind, c.Name, cmp.Or(c.Was, "-"), cmp.Or(c.Is, "-")})
			continue
		}
		row := []string{c.Kind, fmt.Sprintf("%d new", n), "-", "in the lock"}
		if !slices.ContainsFunc(rows, func(r []string) bool { return slices.Equal(r, row) }) {
			rows = append(rows, row)
		}
	}
	return rows
}

// manyPins is the number of new pins of one kind from which on a table only counts them.
const manyPins = 20
