package wheel

import (
	"bytes"
	"cmp"
	"strings"
)

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
