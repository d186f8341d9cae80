package show

import (
	"io"
	"path/filepath"

	"builder/internal/machine/bench"
	"builder/internal/view/term"
)

// Bench prints a comparison and the paths of its files in dir, or the result as JSON.
func Bench(out term.Printer, dir string, r bench.Result, asJSON bool) error {
	if r.Stopped != "" {
		out.Note("stopped: %s", r.Stopped)
	}
	if asJSON {
		content, err := bench.Encode(r)
		if err != nil {
			return err
		}
		_, err = io.WriteString(out.Stdout, term.ShownJSON(string(content)))
		return err
	}
	for _, table := range []func(bench.Result) ([]string, [][]string){bench.Table, bench.SummaryTable} {
		if header, rows := table(r); len(rows) > 0 {
			out.Table(header, rows)
			out.Say("")
		}
	}
	for _, said := range r.OtherReleases() {
		out.Say("%s", said)
	}
	out.Say("%s", filepath.Join(dir, "bench.json"))
	out.Say("%s", filepath.Join(dir, "bench.html"))
	return nil
}
