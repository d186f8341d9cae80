package wheel

import (
	"fmt"
	"net/textproto"
	"strings"
)

// Header holds the fields of METADATA or WHEEL. Read them with Get and Values.
type Header = textproto.MIMEHeader

// ParseHeader reads the fields before the first empty line. Like Python's email parser,
// it accepts more than MIME: values in UTF-8, and a missing empty line at the end.
func ParseHeader(data []byte) (Header, error) {
	h := Header{}
	var field []string // lines of the current field
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		if strings.Contains(line, "\r") {
			return nil, fmt.Errorf("line %d has a carriage return, where Python begins another line", number)
		}
		if line[0] != ' ' && line[0] != '\t' {
			addField(h, field)
			field = field[:0]
			if name, _, ok := strings.Cut(line, ":"); !ok || name == "" || strings.ContainsAny(name, " \t") {
				return nil, fmt.Errorf("line %d is not a field: %.80q", number, line)
			}
		} else if len(field) == 0 {
			return nil, fmt.Errorf("line %d continues a field, but no field comes before it", number)
		}
		field = append(field, line)
	}
	addField(h, field)
	return h, nil
}

func addField(h Header, lines []string) {
	if len(lines) > 0 {
		name, value, _ := strings.Cut(strings.Join(lines, "\n"), ":")
		h.Add(name, strings.TrimSpace(value))
	}
}
