package pipelines

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"
)

// stream is the log of the running step. While an exec runs it reads the progress
// of the Dagger client (its plain form, v0.19.10) and passes on what the exec
// prints:
//
//	14  : ┆ [12.3s] | Building CXX object …
//
// Results and errors come from the API; this is for people who watch, and for
// the log of a step that fails. The progress lags behind the API: an exec that
// has ended is waited for ([stream.settle]), and what comes even later is
// dropped, so that no line stands in the log of another step.
type stream struct {
	mu     sync.Mutex
	rest   []byte
	log    io.Writer
	lines  int             // that the running exec has printed
	last   string          // of them
	number string          // the client's for the running exec
	ended  map[string]bool // numbers of the execs before it
	execs  int             // of the step
	cached int             // of them
}

var (
	ansi       = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")
	outputLine = regexp.MustCompile(`^(\d+)\s*: (?:┆ )*\[[0-9.ms]+\] \| (.*)$`)
)

func newStream() *stream { return &stream{log: io.Discard, ended: map[string]bool{}} }

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
	if m == nil || s.ended[string(m[1])] {
		return
	}
	s.number = string(m[1])
	if bytes.HasPrefix(m[2], []byte(stampPrefix)) {
		return
	}
	s.lines, s.last = s.lines+1, string(m[2])
	s.log.Write(append(m[2], '\n'))
}

// lag is how long an exec that has ended is waited for.
const lag = time.Second

// settle waits until the progress has caught up with an exec that has ended with
// this output, and closes its part of the log.
func (s *stream) settle(output string) {
	want := lastLine(output)
	for deadline := time.Now().Add(lag); !s.seen(want) && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[s.number] = true
	s.last = ""
}

func (s *stream) seen(line string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return line == "" || strings.TrimSpace(s.last) == line
}

func lastLine(output string) string {
	output = string(ansi.ReplaceAll([]byte(strings.TrimSpace(output)), nil))
	return strings.TrimSpace(output[strings.LastIndexByte(output, '\n')+1:])
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
	if !cached {
		s.settle(output)
	}
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
