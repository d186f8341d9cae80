package patch

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"builder/internal/base/diag"
)

// Bounds of the search for a close line: the source is of others, and a comparison takes
// the product of both lengths.
const (
	maxCompared = 1 << 19 // bytes of the file
	maxPattern  = 120     // bytes of the searched line
)

// closest describes what a file lacks of a text that is missing in it: the first missing
// line, and the line most like it.
func closest(text []byte, search string) string {
	missing := lacked(text, search)
	switch {
	case strings.TrimSpace(search) == "":
		return ""
	case missing == "":
		return "; the file has its lines with other space or in another order"
	}
	var lines []string
	for line := range bytes.Lines(text[:min(len(text), maxCompared)]) {
		lines = append(lines, strings.TrimSpace(string(line)))
	}
	said := fmt.Sprintf("; the file lacks the line %q", short(missing))
	if near := diag.Nearest(missing[:min(len(missing), maxPattern)], lines); near != "" {
		said += fmt.Sprintf(", the closest is line %d: %q", slices.Index(lines, near)+1, short(near))
	}
	return said
}

// lacked returns the first line of search that a file does not have, or "".
func lacked(text []byte, search string) string {
	for line := range strings.Lines(search) {
		if line = strings.TrimSpace(line); line != "" && !bytes.Contains(text, []byte(line)) {
			return line
		}
	}
	return ""
}
