package show

import (
	"builder/internal/base/size"
	"builder/internal/build/carry"
	"builder/internal/view/term"
)

// Export prints the content of a written archive as text or as JSON.
func Export(out term.Printer, to string, index carry.Index, asJSON bool) error {
	if asJSON {
		return out.JSON(struct {
			To    string `json:"to"`
			Bytes int64  `json:"bytes"`
			carry.Index
		}{to, index.Bytes(), index})
	}
	for _, c := range index.Cells {
		out.Say("%s %s", c.ID, c.Key[:12])
	}
	out.Say("wrote %s: %d cells, %d files, %s, %d results", to, len(index.Cells), len(index.Blobs), size.Text(index.Bytes()), len(index.Results))
	return nil
}
