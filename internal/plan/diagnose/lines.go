package diagnose

import (
	"bufio"
	"bytes"
	"errors"
	"io"
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
		l.text = plain(l.text)
		visit(l)
	}
}

// escape matches the escape sequences of terminals: parameters and a letter, a title or a
// link up to its end, or a character.
var escape = regexp.MustCompile(`(?s)\x1b(?:\[[ -?]*.?|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)?`)

// plain removes escape sequences.
func plain(text []byte) []byte {
	if bytes.IndexByte(text, '\x1b') < 0 {
		return text
	}
	return escape.ReplaceAll(text, nil)
}
