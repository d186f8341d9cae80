package show

import (
	"cmp"
	"fmt"
	"strings"

	"builder/internal/app/release"
	"builder/internal/base/size"
	"builder/internal/publishing/index"
	"builder/internal/view/term"
)

// Published prints a row for each wheel. existed is the state of a wheel that the
// destination had before.
func Published(out term.Printer, r release.Report, existed string) {
	var rows [][]string
	for _, p := range r.Published {
		state := "published"
		if p.Existed {
			state = existed
		}
		if p.Existed && p.More > 0 {
			state += fmt.Sprintf(", %s added", size.Count(p.More, "file"))
		}
		if p.Yanked != "" {
			state += ", yanked: " + p.Yanked
		}
		rows = append(rows, []string{p.Wheel, state, cmp.Or(p.Channel, "-"), cmp.Or(strings.Join(p.Checked, ", "), "-"), cmp.Or(p.Where, r.To)})
	}
	if len(rows) > 0 {
		out.Table([]string{"wheel", "state", "channels", "checked by", "where"}, rows)
	}
}

// PublishedCells prints the records of an index as a table or as JSON.
func PublishedCells(out term.Printer, all []index.Record, asJSON bool) error {
	if asJSON {
		return out.JSON(map[string]any{"schema": 1, "wheels": all})
	}
	var rows [][]string
	for _, r := range all {
		state := strings.Join(r.Channels, ", ")
		if r.Yanked != "" {
			state += ", yanked"
		}
		rows = append(rows, []string{r.Cell, state, r.Passed(), r.Published.Format("2006-01-02"), r.Filename})
	}
	if len(rows) == 0 {
		out.Note("no wheel is published there")
	}
	out.Table([]string{"cell", "channels", "gates", "published", "wheel"}, rows)
	return nil
}
