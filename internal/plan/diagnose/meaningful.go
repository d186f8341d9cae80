package diagnose

import (
	"os"
	"regexp"
)

// compilerError matches an error of a compiler, linker or CMake. errorLine matches more,
// such as the Traceback of a warning that every good build prints too.
var compilerError = regexp.MustCompile(`:\d+(:\d+)?: (fatal )?error: |^CMake Error|undefined reference to|: cannot find -l`)

var errorLine = regexp.MustCompile(`(?i)\berror\b[: ]|CMake Error|undefined (reference|symbol)|^Traceback |No such file or directory|Killed`)

// Meaningful returns the lines of a log that explain a failure: up to ten lines from the
// first error of a compiler, or else from the first line with an error, and the last
// three. If no line has an error, it returns the end of fallback.
func Meaningful(path string, fallback []string) []string {
	const around, tail = 10, 3
	fallback = fallback[max(0, len(fallback)-around):]
	f, err := os.Open(path)
	if err != nil {
		return fallback
	}
	defer f.Close()
	var lines, last []string
	found, compiler := false, false
	_, err = eachLine(f, func(l line) {
		if len(l.text) == 0 || l.rest {
			return
		}
		if !compiler && compilerError.Match(l.text) {
			found, compiler, lines, last = true, true, nil, nil
		}
		found = found || errorLine.Match(l.text)
		switch {
		case found && len(lines) < around:
			lines = append(lines, string(l.text))
		case found:
			last = append(last, string(l.text))
			last = last[max(0, len(last)-tail):]
		}
	})
	if err != nil || !found {
		return fallback
	}
	if len(last) == tail {
		lines = append(lines, "…")
	}
	return append(lines, last...)
}
