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

// some quotes a few names of many. The names come from the file and are not trusted.
func some(names []string) string {
	var quoted []string
	for _, name := range names {
		quoted = append(quoted, fmt.Sprintf("%.200q", name))
	}
	return listed(quoted, 3)
}

// maxEvidence bounds the evidence, in bytes. Files with thousands of libraries or with
// very long names could make it longer than anyone can read.
const maxEvidence = 64 << 10

// cut shortens a text to n bytes and marks the cut.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return fmt.Sprintf("%s… and %d bytes more", strings.ToValidUTF8(text[:n], ""), len(text)-n)
}

// telling matches a line with the cause of a failure. Python and the dynamic linker
// print it last; MPI prints more lines afterwards.
var telling = regexp.MustCompile(`\w*(Error|Exception)\b|FAILED|undefined symbol|cannot open shared object`)

// lastLine returns the last line with a cause, otherwise the last line with letters,
// shortened for evidence.
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

// jsonLine returns the last line with a JSON object. Warnings may precede and follow
// it.
func jsonLine(output string) string {
	var found string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "{") && strings.HasSuffix(line, "}") {
			found = line
		}
	}
	return found
}
