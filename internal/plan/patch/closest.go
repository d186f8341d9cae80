package patch

import (
	"bytes"
	"fmt"
	"strings"
)

// Bounds of the search for a close line: the source is of others, and a comparison takes
// the product of both lengths.
const (
	maxCompared = 1 << 19 // bytes of the file
	maxPattern  = 120     // bytes of the searched line
)

// closest describes where a text that is missing in a file comes closest to it: the line
// most like its first missing line. It returns "" if no line is like it.
func closest(text []byte, search string) string {
	missing := lacked(text, search)
	if missing == "" && strings.TrimSpace(search) != "" {
		for i, line := range bytes.Split(text, []byte("\n")) {
			if first, _, _ := strings.Cut(strings.TrimLeft(search, "\n"), "\n"); bytes.Contains(line, []byte(strings.TrimSpace(first))) {
				return fmt.Sprintf("; the file has its lines with other space or in another order, the first at line %d: %q", i+1, short(string(line)))
			}
		}
	}
	if missing == "" {
		return ""
	}
	at, found := likest(text, missing)
	switch {
	case found == "":
		return ""
	case strings.TrimSpace(search) == missing && len(search) <= maxShown:
		_, found = fromDifference(missing, found)
		return fmt.Sprintf("; the closest line is %d: %q", at, found)
	}
	missing, found = fromDifference(missing, found)
	return fmt.Sprintf("; the file lacks the line %q, the closest is line %d: %q", missing, at, found)
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

// likest returns the line most like a missing one, and its number. It returns 0 and ""
// if no line is like it.
func likest(text []byte, missing string) (at int, found string) {
	best := min(len(missing), maxPattern) / 2
	for i, line := range bytes.Split(text[:min(len(text), maxCompared)], []byte("\n")) {
		if d := within(missing, line); d < best {
			at, best, found = i+1, d, string(line)
		}
	}
	return at, found
}

// replaced reports whether a file has the replacement of a text that it lacks. The
// replacement can also stand elsewhere in the file, while the search text has an error.
// Then another line, without the replacement, is more like the search text.
func replaced(text []byte, e Edit) bool {
	if len(matches(text, e.Replace)) < e.Count {
		return false
	}
	missing := lacked(text, e.Search)
	_, other := likest(bytes.ReplaceAll(text, []byte(e.Replace), nil), missing)
	if missing == "" || other == "" {
		return true
	}
	return within(missing, []byte(strings.ReplaceAll(e.Replace, "\n", " "))) <= within(missing, []byte(other))
}

// lead is the number of characters shown before the first difference of two lines.
const lead = 30

// fromDifference shortens two lines so that both show where they first differ.
func fromDifference(a, b string) (string, string) {
	a, b = strings.TrimSpace(a), strings.TrimSpace(b)
	ra, rb := []rune(a), []rune(b)
	same := 0
	for same < min(len(ra), len(rb)) && ra[same] == rb[same] {
		same++
	}
	if max(len(a), len(b)) <= maxShown || same <= lead {
		return short(a), short(b)
	}
	return "…" + short(string(ra[same-lead:])), "…" + short(string(rb[same-lead:]))
}

// within returns the smallest Levenshtein distance between the start of a pattern and any
// part of a line, in bytes.
func within(pattern string, line []byte) int {
	pattern = pattern[:min(len(pattern), maxPattern)]
	row := make([]int, len(pattern)+1)
	for j := range row {
		row[j] = j
	}
	best := row[len(pattern)]
	for _, c := range line {
		diagonal := 0 // a part may begin anywhere
		for j := range len(pattern) {
			cost := diagonal
			if pattern[j] != c {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
		best = min(best, row[len(pattern)])
	}
	return best
}
