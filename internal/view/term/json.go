package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"builder/internal/base/diag"
)

// JSON writes a value as JSON whose texts are as they are, < and > too, but that can
// be shown: what [Clean] would take out is written as an escape, and so is what a
// server would take for a command. Credentials are left out.
func JSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, ShownJSON(b.String()))
	return err
}

// ShownJSON does to JSON that is written already what [JSON] does.
func ShownJSON(text string) string {
	// Two # stand in a text only, and so does what cannot be shown.
	text = commands.ReplaceAllString(diag.Redact(text), "#\\u0023$1[")
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || printable(r) == r:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, "\\u%04x\\u%04x", high, low)
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}
