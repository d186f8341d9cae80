package wheel

import (
	"bytes"
	"cmp"
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

// Types of descriptions. By the standard, RST is the default if METADATA states no
// type.
const (
	typeRST   = "text/x-rst"
	typePlain = "text/plain"
)

// Described returns METADATA with a description and its type, as package indexes
// require (twine check --strict). If the type is missing, it adds the default. A wheel
// without a description gets its summary or its name as the description. Described
// returns unreadable METADATA and versions before 2.1 unchanged, because older versions
// have no description type.
func Described(metadata []byte) []byte {
	head, body := metadata, []byte(nil)
	if i := bytes.Index(metadata, []byte("\n\n")); i >= 0 {
		head, body = metadata[:i+1], metadata[i+2:]
	} else if i := bytes.Index(metadata, []byte("\r\n\r\n")); i >= 0 {
		head, body = metadata[:i+2], metadata[i+4:]
	}
	h, err := ParseHeader(head)
	version := h.Get("Metadata-Version")
	if err != nil || !strings.HasPrefix(version, "2.") || version == "2.0" {
		return metadata
	}
	described := h.Get("Description") != "" || len(bytes.TrimSpace(body)) > 0
	if described && h.Get("Description-Content-Type") != "" {
		return metadata
	}
	kind := typeRST
	if !described {
		kind, body = typePlain, []byte(cmp.Or(h.Get("Summary"), h.Get("Name"))+"\n")
	}
	end := "\n"
	if bytes.HasSuffix(head, []byte("\r\n")) {
		end = "\r\n"
	}
	var b bytes.Buffer
	for line := range bytes.Lines(head) {
		if name, _, _ := bytes.Cut(line, []byte(":")); !strings.EqualFold(string(name), "Description-Content-Type") {
			b.Write(bytes.TrimRight(line, "\r\n"))
			b.WriteString(end)
		}
	}
	b.WriteString("Description-Content-Type: " + kind + end + end)
	b.Write(body)
	return b.Bytes()
}
