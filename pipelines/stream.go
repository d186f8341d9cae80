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

// stream is the log of the running step. While an exec runs, it parses the progress of
// the Dagger client (in plain format, v0.19.10) and copies the exec's output:
//
//	14  : ┆ [12.3s] | Building CXX object …
//
// The API returns results and errors. The log is for users watching a run and for
// failed steps. Progress arrives later than the API's answer, often by a tenth of a
// second. So stream completes the log from the answer when an exec ends
// ([stream.settle]), and drops what comes later. It recognises such lines by the exec's
// stamp, which comes before them. No line can get into the log of another step.
type stream struct {
	mu     sync.Mutex
	rest   []byte
	log    io.Writer
	size   int             // bytes in the log of the step
	lines  int             // printed by the running exec
	last   string          // last line of the running exec
	number string          // client's number for the running exec
	ended  map[string]bool // numbers and stamps of earlier execs
	execs  int             // execs of the step
	cached int             // execs of the step from the cache
}

var (
	ansi       = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")
	outputLine = regexp.MustCompile(`^(\d+)\s*: (?:┆ )*\[[0-9.ms]+\] \| (.*)$`)
	// clientLine matches the lines that the client prints about itself as it connects.
	clientLine = regexp.MustCompile(`^(cloud url=|\S+ INF connected name=)`)
)

func newStream() *stream { return &stream{log: io.Discard, ended: map[string]bool{}} }

// Write receives the client's progress in pieces of any size.
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
	if m == nil || s.ended[string(m[1])] || clientLine.Match(m[2]) {
		return
	}
	if bytes.HasPrefix(m[2], []byte(stampPrefix)) && s.ended[string(m[2])] {
		s.ended[string(m[1])] = true
		return
	}
	s.number = string(m[1])
	if bytes.HasPrefix(m[2], []byte(stampPrefix)) {
		return
	}
	s.lines, s.last = s.lines+1, string(m[2])
	s.print(s.last + "\n")
}

// maxLog bounds the log of a step in bytes. A step can print without end, and its log
// lies on another disk than the engine's cache.
const maxLog = 128 << 20

// print adds text to the log, up to its bound.
func (s *stream) print(text string) {
	if s.size > maxLog {
		return
	}
	if s.size += len(text); s.size > maxLog {
		text = "builder: the log ends here, because the step printed too much\n"
	}
	io.WriteString(s.log, text)
}

// lag is the longest wait for the output of a finished exec.
const lag = time.Second

// settle completes the log of a finished exec from all that it printed, and closes its
// part of the log. If the progress differs from that, for example after a carriage
// return, settle waits for the rest of the progress.
func (s *stream) settle(printed string) {
	first, output := cutStamp(printed)
	for deadline := time.Now().Add(lag); !s.complete(first, output) && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines == 0 {
		s.print(output)
	}
	s.ended[s.number] = true
	s.lines, s.last, s.number = 0, "", ""
}

// complete writes the lines of output that the progress has not shown yet, if those that
// it has shown are the first of them.
func (s *stream) complete(stamp, output string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := strings.SplitAfter(string(ansi.ReplaceAll([]byte(output), nil)), "\n")
	if stamp == "" || s.lines > len(lines) || s.lines > 0 && strings.TrimSuffix(lines[s.lines-1], "\n") != s.last {
		return false
	}
	s.ended[stamp] = true
	for _, line := range lines[s.lines:] {
		s.print(line)
	}
	s.lines = len(lines)
	return true
}

// begin directs further output to the log of a step.
func (s *stream) begin(log io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log, s.size, s.lines, s.execs, s.cached = log, 0, 0, 0, 0
}

// ran records a finished exec of the step with all that it printed. The client shows no
// cached output, so ran writes it to the log.
func (s *stream) ran(cached bool, printed string) {
	if !cached {
		s.settle(printed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.execs++
	if cached {
		s.cached++
		_, output := cutStamp(printed)
		s.print(output)
	}
}

// note writes a line to the log of the running step.
func (s *stream) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.log, format+"\n", args...)
}

// end stops the log and reports whether all execs of the step came from the cache. A
// step without execs ran on this host and is not cached.
func (s *stream) end() (cached bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = io.Discard
	return s.execs > 0 && s.cached == s.execs
}
