package pipelines

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"sync"
)

// stream is the log of the running step. While an exec runs it reads the progress
// of the Dagger client (its plain form, v0.19.10) and passes on what the exec
// prints:
//
//	14  : ┆ [12.3s] | Building CXX object …
//
// Results and errors come from the API; this is for people who watch, and for
// the log of a step that fails.
type stream struct {
	mu     sync.Mutex
	rest   []byte
	log    io.Writer
	lines  int // that the running exec has printed
	execs  int // of the step
	cached int // of them
}

var (
	ansi       = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")
	outputLine = regexp.MustCompile(`^\d+\s*: (?:┆ )*\[[0-9.ms]+\] \| (.*)$`)
)

func newStream() *stream { return &stream{log: io.Discard} }

// Write takes the client's progress, in pieces of any size.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = append(s.rest, p...)
	for {
		i := bytes.IndexByte(s.rest, '\n')
		if i < 0 {
			break
		}
		s.line(ansi.ReplaceAll(s.rest[:i], nil))
		s.rest = s.rest[i+1:]
	}
	return len(p), nil
}

func (s *stream) line(line []byte) {
	m := outputLine.FindSubmatch(line)
	if m == nil || bytes.HasPrefix(m[1], []byte(stampPrefix)) {
		return
	}
	s.lines++
	s.log.Write(append(m[1], '\n'))
}

// begin sends what follows to the log of a step.
func (s *stream) begin(log io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log, s.lines, s.execs, s.cached = log, 0, 0, 0
}

// ran notes that an exec of the step has ended, and what it printed. The client
// shows nothing of what came from the cache; the log does.
func (s *stream) ran(cached bool, output string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.execs++
	if cached {
		s.cached++
	}
	if s.lines == 0 {
		io.WriteString(s.log, output)
	}
	s.lines = 0
}

// note writes a line of our own to the log of the running step.
func (s *stream) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.log, format+"\n", args...)
}

// end stops the log and reports whether all execs of the step came from the
// cache. A step without one did its work here.
func (s *stream) end() (cached bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = io.Discard
	return s.execs > 0 && s.cached == s.execs
}
