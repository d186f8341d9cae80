package diagnose

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
)

// maxLine bounds a piece of a line, in bytes.
const maxLine = 64 << 10

// A line of a log, without its end and without escape sequences. A line with carriage
// returns, as from a progress bar, and a line longer than maxLine are visited in
// several pieces with the same number.
type line struct {
	number int // from 1
	text   []byte
	rest   bool // continues the previous piece
}

// eachLine visits the lines of a log and returns their number. The text is valid until
// visit returns.
func eachLine(log io.Reader, visit func(line)) (lines int, err error) {
	r := bufio.NewReaderSize(log, maxLine)
	rest := false
	for {
		text, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return lines, err
		}
		if len(text) > 0 {
			if !rest {
				lines++
			}
			eachPiece(line{lines, text, rest}, visit)
		}
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		rest = err != nil
	}
}

// eachPiece visits the parts of a line between carriage returns.
func eachPiece(l line, visit func(line)) {
	text := bytes.TrimRight(l.text, "\r\n")
	for more := true; more; l.rest = false {
		l.text, text, more = bytes.Cut(text, []byte{'\r'})
		if bytes.IndexByte(l.text, '\x1b') >= 0 {
			l.text = escape.ReplaceAll(l.text, nil)
		}
		visit(l)
	}
}

// escape matches the escape sequences of terminals: parameters and a letter, a title or a
// link up to its end, or a character.
var escape = regexp.MustCompile(`(?s)\x1b(?:\[[ -?]*.?|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)?`)

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
