package diagnose

import (
	"bufio"
	"bytes"
	"errors"
	"io"
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

// eachLine visits the lines of a log until visit returns false, and returns their
// number. The text is valid until visit returns.
func eachLine(log io.Reader, visit func(line) bool) (lines int, err error) {
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
			if !eachPiece(line{lines, text, rest}, visit) {
				return lines, nil
			}
		}
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		rest = err != nil
	}
}

// eachPiece visits the parts of a line between carriage returns.
func eachPiece(l line, visit func(line) bool) bool {
	text := bytes.TrimRight(l.text, "\r\n")
	for more := true; more; l.rest = false {
		l.text, text, more = bytes.Cut(text, []byte{'\r'})
		l.text = plain(l.text)
		if !visit(l) {
			return false
		}
	}
	return true
}

// plain removes escape sequences, in place.
func plain(text []byte) []byte {
	i := bytes.IndexByte(text, escape)
	if i < 0 {
		return text
	}
	kept := text[:i]
	for i < len(text) {
		if n := sequence(text[i:]); n > 0 {
			i += n
			continue
		}
		kept = append(kept, text[i])
		i++
	}
	return kept
}

const (
	escape = '\x1b'
	bell   = '\x07'
)

// sequence returns the length of the escape sequence at the beginning of text, or 0 if
// there is none.
func sequence(text []byte) int {
	switch {
	case text[0] != escape:
		return 0
	case len(text) == 1:
		return 1
	case text[1] == '[': // parameters, then a letter
		i := 2
		for i < len(text) && text[i] >= ' ' && text[i] <= '?' {
			i++
		}
		return min(i+1, len(text))
	case text[1] == ']': // a title or a link; ends with a bell or ESC \
		end := 2 + bytes.IndexAny(text[2:], string([]byte{bell, escape}))
		switch {
		case end < 2:
		case text[end] == bell:
			return end + 1
		case bytes.HasPrefix(text[end+1:], []byte{'\\'}):
			return end + 2
		}
	}
	return 2
}
