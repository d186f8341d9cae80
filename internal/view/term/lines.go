package term

import (
	"bytes"
	"sync"
)

// maxPending bounds an incomplete line, in bytes. A longer line is passed on in parts.
const maxPending = 64 << 10

// Lines is a writer that passes on whole lines without line ends. It is safe for
// concurrent use.
type Lines struct {
	mu   sync.Mutex
	rest []byte
	each func(line string)
}

// NewLines returns a writer that calls each with one line at a time.
func NewLines(each func(line string)) *Lines { return &Lines{each: each} }

// Write implements io.Writer. It never fails.
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 && len(l.rest) < maxPending {
			return len(p), nil
		}
		line := l.rest
		if i >= 0 {
			line, l.rest = l.rest[:i], l.rest[i+1:]
		} else {
			l.rest = nil
		}
		l.each(string(bytes.TrimSuffix(line, []byte("\r"))))
	}
}

// Flush passes on a last line without a line end.
func (l *Lines) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rest) > 0 {
		l.each(string(l.rest))
		l.rest = nil
	}
}
