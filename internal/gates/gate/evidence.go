package gate

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// listed joins names, at most n of them.
func listed(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], " "), len(names)-n)
}

// some quotes a few names of many: they come from the file, and may be anything.
func some(names []string) string {
	var quoted []string
	for _, name := range names {
		quoted = append(quoted, fmt.Sprintf("%.100q", name))
	}
	return listed(quoted, 3)
}

// maxEvidence is far more than anybody reads: files with thousands of libraries,
// or with names of thousands of letters, have more to say.
const maxEvidence = 64 << 10

// cut shortens a text to n bytes, and says so.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return fmt.Sprintf("%s… and %d bytes more", strings.ToValidUTF8(text[:n], ""), len(text)-n)
}

// telling is a line that says why a program failed; Python and the dynamic
// linker say it last, MPI says more afterwards.
var telling = regexp.MustCompile(`\w*(Error|Exception)\b|FAILED|undefined symbol|cannot open shared object`)

// lastLine returns the last line that says why, else the last that says
// anything, shortened to what fits an evidence.
func lastLine(output string) string {
	last := "no output"
	found := false
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		tells := telling.MatchString(line)
		if tells || !found && strings.ContainsFunc(line, unicode.IsLetter) {
			last, found = line, found || tells
		}
	}
	if runes := []rune(last); len(runes) > 400 {
		return string(runes[:400]) + "…"
	}
	return last
}

// jsonLine returns the last line that is a JSON object: warnings may stand
// before and after it.
func jsonLine(output string) string {
	var found string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "{") && strings.HasSuffix(line, "}") {
			found = line
		}
	}
	return found
}
