package pipelines

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"sync"
)

// stream reads the progress of the Dagger client (its plain form, v0.19.10) and
// passes on what the running exec prints:
//
//	14  : ┆ [12.3s] | Building CXX object …
//
// It also sees whether every exec of a step came from the cache. Nothing depends
// on it but what people watch: results and errors come from the API.
type stream struct {
	mu       sync.Mutex
	rest     []byte
	log      io.Writer
	cached   int // execs answered from the cache since begin
	executed int // lines of output since begin
}

var (
	ansi       = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")
	outputLine = regexp.MustCompile(`^\d+\s*: (?:┆ )*\[[0-9.ms]+\] \| (.*)$`)
	cachedLine = regexp.MustCompile(`^\d+\s*: (?:┆ )*Container\.withExec CACHED`)
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
	if m := outputLine.FindSubmatch(line); m != nil {
		s.executed++
		s.log.Write(append(m[1], '\n'))
	} else if cachedLine.Match(line) {
		s.cached++
	}
}

// begin sends what follows to log.
func (s *stream) begin(log io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log, s.cached, s.executed = log, 0, 0
}

// note writes a line of our own to the log of the running step.
func (s *stream) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.log, format+"\n", args...)
}

// end stops the log and reports whether all execs since begin were cached.
func (s *stream) end() (cached bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cached = s.cached > 0 && s.executed == 0
	s.log = io.Discard
	return cached
}
