package publish

import (
	"strings"
	"unicode"
)

// digits returns the version of an interpreter's tag: cp311 is 3.11, py3 is 3.
func digits(tag string) string {
	number := strings.TrimLeftFunc(tag, func(r rune) bool { return !unicode.IsDigit(r) })
	if len(number) > 1 {
		return number[:1] + "." + number[1:]
	}
	return number
}

// lastLine returns the last line that says something.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
