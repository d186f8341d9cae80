package show

import (
	"builder/internal/app/host"
	"builder/internal/base/size"
	"builder/internal/build/native"
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

// Engine prints the state of the native engine. cache is the size of its cache in bytes.
func Engine(out term.Printer, s native.Status, cache int64) {
	switch {
	case s.Running:
		out.Say("running %s at %s (process %d)", native.Version, s.Address, s.PID)
	case s.Built:
		out.Say("built %s, not running", native.Version)
	default:
		out.Say("not built: the first run builds it")
	}
	out.Say("cache %s, %s", s.StateDir, size.Text(cache))
	out.Say("log %s", s.Log)
}

// Collected prints the removed files and the sizes before and after.
func Collected(out term.Printer, done host.Collected, r host.CollectRequest) {
	verb := "removed"
	if r.DryRun {
		verb = "would remove"
	}
	for _, f := range done.Files {
		out.Say("%s %s, %s, last used %s", verb, f.SHA256, size.Text(f.Size), f.Used.Format("2006-01-02"))
	}
	for _, name := range done.Staged {
		out.Say("%s scratch/%s", verb, name)
	}
	out.Say("%s %d files and %d results; the store has %s, had %s", verb, len(done.Files), len(done.Results), size.Text(done.After), size.Text(done.Before))
	for _, p := range done.Places {
		would := ""
		if r.DryRun {
			would = ", and would be emptied"
		}
		out.Say("%s has %s, had %s%s", p.Name, size.Text(p.After), size.Text(p.Before), would)
	}
}

// Export prints the exported cells, and counts the files.
func Export(out term.Printer, done host.Exported) {
	for _, c := range done.Cells {
		out.Say("%s %s", c.ID, c.Key[:12])
	}
	out.Say("wrote %s: %d cells, %d files, %s", done.To, len(done.Cells), done.Files, size.Text(done.Bytes))
}

// Imported counts the files of an imported archive.
func Imported(out term.Printer, took host.Imported) {
	out.Say("imported %d files, %s; the store already had %d files", took.Files, size.Text(took.Bytes), took.Known)
}

// Checked prints how much of the store was read.
func Checked(out term.Printer, read host.StoreCheck) {
	out.Say("read %d files, %s: %d damaged", read.Files, size.Text(read.Bytes), len(read.Damaged))
}
