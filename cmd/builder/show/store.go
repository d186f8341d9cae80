package show

import (
	"builder/internal/app/host"
	"builder/internal/base/size"
	"builder/internal/view/term"
)

// Collected prints the removed files and the sizes before and after.
func Collected(out term.Printer, done host.Collected, r host.CollectRequest) {
	verb := "removed"
	if r.DryRun {
		verb = "would remove"
	}
	for _, f := range done.Files {
		out.Say("%s %s %s, %s, last used %s", verb, f.Kind, f.SHA256, size.Text(f.Size), f.Used.Format("2006-01-02"))
	}
	for _, name := range done.Staged {
		out.Say("%s scratch/%s", verb, name)
	}
	out.Say("%s %d files and %d results; the store has %s, had %s", verb, len(done.Files), len(done.Results), size.Text(done.After), size.Text(done.Before))
	for _, p := range done.Places {
		would := ""
		if p.Emptied() && r.DryRun {
			would = ", and would be emptied"
		}
		out.Say("%s has %s, had %s%s", p.Name, size.Text(p.After), size.Text(p.Before), would)
	}
}
