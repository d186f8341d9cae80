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

// JSON writes a value as JSON safe to print. It keeps < and > as they are. It escapes
// the commands of CI servers and the characters removed by [Clean]. It removes
// credentials.
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

// ShownJSON makes encoded JSON safe to print, as [JSON] does.
func ShownJSON(text string) string {
	// In valid JSON, ## and unprintable characters occur only inside strings.
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
