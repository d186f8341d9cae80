package show

import (
	"fmt"

	"builder/internal/app"
	"builder/internal/view/term"
)

// Collected prints the removed files and the sizes before and after.
func Collected(out term.Printer, done app.Collected, r app.CollectRequest) {
	verb := "removed"
	if r.DryRun {
		verb = "would remove"
	}
	for _, f := range done.Files {
		out.Say("%s %s %s, %s, last used %s", verb, f.Kind, f.SHA256, Megabytes(f.Size), f.Used.Format("2006-01-02"))
	}
	for _, name := range done.Staged {
		out.Say("%s scratch/%s", verb, name)
	}
	out.Say("%s %d files and %d results; the store has %s, had %s", verb, len(done.Files), len(done.Results), Megabytes(done.After), Megabytes(done.Before))
	for _, p := range done.Places {
		would := ""
		if p.Emptied() && r.DryRun {
			would = ", and would be emptied"
		}
		out.Say("%s has %s, had %s%s", p.Name, Megabytes(p.After), Megabytes(p.Before), would)
	}
}

// Megabytes formats a number of bytes.
func Megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
