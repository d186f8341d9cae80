package show

import (
	"cmp"

	"builder/cmd/builder/config"
	"builder/internal/view/term"
)

// Config prints settings with their origins as a table or as JSON.
func Config(out term.Printer, settings []config.Shown, asJSON bool) error {
	if asJSON {
		return out.JSON(struct {
			Schema   int            `json:"schema"`
			Settings []config.Shown `json:"settings"`
		}{1, settings})
	}
	var rows [][]string
	for _, s := range settings {
		rows = append(rows, []string{s.Key, term.Clean(s.Value), term.Clean(cmp.Or(s.Place, s.Origin))})
	}
	out.Table([]string{"key", "value", "from"}, rows)
	return nil
}
