package show

import (
	"builder/internal/app/config"
	"builder/internal/view/term"
)

// Config prints settings as a table, with their origin on request, or as JSON.
func Config(out term.Printer, settings []config.Shown, origin, asJSON bool) error {
	if asJSON {
		return out.JSON(struct {
			Schema   int            `json:"schema"`
			Settings []config.Shown `json:"settings"`
		}{1, settings})
	}
	header, rows := []string{"key", "value"}, [][]string{}
	if origin {
		header = append(header, "from")
	}
	for _, s := range settings {
		row := []string{s.Key, term.Clean(s.Value)}
		switch {
		case origin && s.Place != "":
			row = append(row, term.Clean(s.Place))
		case origin:
			row = append(row, s.Origin)
		}
		rows = append(rows, row)
	}
	out.Table(header, rows)
	return nil
}
