package pipelines

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// progress is the output of the Dagger client v0.19.10 while it connects and an exec
// runs, with colours.
const progress = "2   : [0.0s] | cloud url=https://example.org/setup\n2   : [0.1s] | 07:04:15 INF connected name=vm client-version=v0.19.10\n" +
	"\x1b[95m14  : \x1b[0m\x1b[90;2m\x1b[0m\x1b[90m[0.1s] \x1b[0m\x1b[90m|\x1b[0m builder-ran 1763710000000000000\n" +
	"\x1b[95m14  : \x1b[0m\x1b[90;2m\x1b[0m\x1b[90m[0.2s] \x1b[0m\x1b[90m|\x1b[0m line 1\n" +
	"\x1b[95m14  : \x1b[0m\x1b[90;2m┆ \x1b[0m\x1b[90m[1m2s] \x1b[0m\x1b[90m|\x1b[0m line | 2\n" +
	"\x1b[95m12  : \x1b[0m\x1b[90;2m\x1b[0mContainer.\x1b[1mwithRootfs\x1b[0m\x1b[32m DONE\x1b[0m\x1b[90m [0.0s]\x1b[0m\n" +
	"15  : withExec sh -c 'echo hello'\n"

func TestStreamPassesOnWhatTheExecPrints(t *testing.T) {
	for size := 1; size < 200; size += 13 {
		var log strings.Builder
		s := newStream()
		s.begin(&log)
		for rest := progress; rest != ""; {
			n := min(size, len(rest))
			fmt.Fprint(s, rest[:n])
			rest = rest[n:]
		}
		s.ran(false, "builder-ran 1763710000000000000\nline 1\nline | 2\n")
		cached := s.end()
		must.Hold(t, !cached && log.String() == "line 1\nline | 2\n", "in pieces of %d: cached %v, log %q", size, cached, log.String())
	}
}

// The log of a step is bounded, whatever the step prints.
func TestStreamBoundsTheLog(t *testing.T) {
	var log counter
	s := newStream()
	s.begin(&log)
	line := strings.Repeat("x", 1<<20) + "\n"
	for range 200 {
		s.ran(true, line)
	}
	check.That(t, log.bytes <= maxLog+1000 && strings.HasPrefix(log.last, "builder: the log ends here"),
		"%d bytes, the last are %.40q", log.bytes, log.last)
	s.begin(&log)
	s.ran(true, "line 1\n")
	check.That(t, log.last == "line 1\n", "the next step has %.40q in its log", log.last)
}

// counter counts what is written to it.
type counter struct {
	bytes int
	last  string
}

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += len(p)
	c.last = string(p)
	return len(p), nil
}

func TestStreamOfACachedStep(t *testing.T) {
	var log strings.Builder
	s := newStream()
	s.begin(&log)
	s.ran(true, "line 1\n")
	s.ran(true, "line 2\n")
	cached := s.end()
	check.That(t, cached && log.String() == "line 1\nline 2\n", "cached %v, log %q", cached, log.String())
	s.begin(&log)
	check.That(t, !s.end(), "a step without an exec is not cached")
	s.begin(&log)
	s.ran(true, "")
	s.ran(false, "builder-ran 1\n")
	check.That(t, !s.end(), "a step of which one exec ran is not cached")
}

// The log is complete when an exec ends, and late progress of the exec is dropped.
func TestStreamDropsWhatLags(t *testing.T) {
	const stamp = "builder-ran 1763710000000000000\n"
	for _, c := range []struct{ name, early, late string }{
		{"all of it", "", "7   : [0.1s] | " + stamp + "7   : [0.1s] | one\n7   : [0.1s] | two\n"},
		{"all but the stamp", "7   : [0.1s] | " + stamp, "7   : [0.1s] | one\n7   : [0.1s] | two\n"},
		{"the end", "7   : [0.1s] | " + stamp + "7   : [0.1s] | one\n", "7   : [0.1s] | two\n"},
		{"nothing", "7   : [0.1s] | " + stamp + "7   : [0.1s] | one\n7   : [0.1s] | two\n", ""},
	} {
		var first, second strings.Builder
		s := newStream()
		s.begin(&first)
		fmt.Fprint(s, c.early)
		s.ran(false, stamp+"one\n\x1b[1mtwo\x1b[0m\n")
		s.end()
		s.begin(&second)
		fmt.Fprint(s, c.late+"8   : [0.1s] | builder-ran 1763710000000000001\n8   : [0.1s] | of the next\n")
		s.ran(false, "builder-ran 1763710000000000001\nof the next\n")
		check.That(t, first.String() == "one\ntwo\n" && second.String() == "of the next\n",
			"%s lags: got %q and %q", c.name, first.String(), second.String())
	}
}

// A step may go on after a failed exec.
func TestStreamAfterAFailedExec(t *testing.T) {
	var log strings.Builder
	s := newStream()
	s.begin(&log)
	fmt.Fprint(s, "7   : [0.1s] | builder-ran 1\n7   : [0.1s] | one\n")
	s.settle("builder-ran 1\none\ntwo\n")
	fmt.Fprint(s, "8   : [0.1s] | builder-ran 2\n8   : [0.1s] | three\n")
	begun := time.Now()
	s.ran(false, "builder-ran 2\nthree\nfour\n")
	check.That(t, log.String() == "one\ntwo\nthree\nfour\n" && time.Since(begun) < lag, "after %v: %q", time.Since(begun), log.String())
}

// Progress that differs from the output is logged until settle times out, and dropped
// afterwards.
func TestStreamWaitsForOtherProgress(t *testing.T) {
	var first, second strings.Builder
	s := newStream()
	s.begin(&first)
	fmt.Fprint(s, "7   : [0.1s] | builder-ran 1763710000000000000\n7   : [0.1s] | 50%\n")
	go func() {
		time.Sleep(50 * time.Millisecond)
		fmt.Fprint(s, "7   : [0.1s] | refused\n")
	}()
	s.ran(false, "builder-ran 1763710000000000000\n50%\r100%\nrefused\n")
	s.end()
	s.begin(&second)
	fmt.Fprint(s, "7   : [0.1s] | refused again\n8   : [0.1s] | of the next\n")
	check.That(t, first.String() == "50%\nrefused\n" && second.String() == "of the next\n",
		"got %q and %q", first.String(), second.String())
}

func TestStamp(t *testing.T) {
	at, output := stamp("builder-ran 1763710000000000000\nhello\n")
	check.That(t, at.Equal(time.Unix(1763710000, 0)) && output == "hello\n", "got %v, %q", at, output)
	for _, text := range []string{"", "hello\n", "builder-ran x\nhello\n"} {
		at, output := stamp(text)
		check.That(t, at.IsZero() && output == text, "%q: got %v, %q", text, at, output)
	}
}
