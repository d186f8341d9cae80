package diagnose

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// pieces returns the visited pieces of a log as number:text. A piece that continues the
// previous one has a + before its text.
func pieces(t testing.TB, log io.Reader) ([]string, int) {
	t.Helper()
	var got []string
	n, err := eachLine(log, func(l line) {
		mark := ""
		if l.rest {
			mark = "+"
		}
		got = append(got, fmt.Sprintf("%d:%s%s", l.number, mark, l.text))
	})
	must.Succeed(t, err)
	return got, n
}

func TestEachLine(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for name, c := range map[string]struct {
		log   string
		want  []string
		lines int
	}{
		"nothing":           {"", nil, 0},
		"one":               {"a\n", []string{"1:a"}, 1},
		"no end":            {"a\nb", []string{"1:a", "2:b"}, 2},
		"empty lines":       {"\n\na\n", []string{"1:", "2:", "3:a"}, 3},
		"of Windows":        {"a\r\nb\r\n", []string{"1:a", "2:b"}, 2},
		"a progress bar":    {"10%\r20%\rdone\nb\n", []string{"1:10%", "1:20%", "1:done", "2:b"}, 2},
		"colours":           {"\x1b[1;31merror:\x1b[0m x\x1b[K\n", []string{"1:error: x"}, 1},
		"a link":            {"\x1b]8;;file:///a\x1b\\a.c\x1b]8;;\x07 b\n", []string{"1:a.c b"}, 1},
		"other sequences":   {"\x1b(Ba\x1bM b\x1b\n", []string{"1:Ba b"}, 1},
		"half a sequence":   {"a\x1b[31", []string{"1:a"}, 1},
		"a title for ever":  {"a\x1b]0;t\x1b[1mb\x1b[0m", []string{"1:a0;tb"}, 1},
		"as long as can be": {long[1:] + "\nb\n", []string{"1:" + long[1:], "2:b"}, 2},
		"longer":            {long + "yz\nb\n", []string{"1:" + long, "1:+yz", "2:b"}, 2},
		"as long, no end":   {long, []string{"1:" + long}, 1},
		"as long, an end":   {long + "\nb", []string{"1:" + long, "1:+", "2:b"}, 2},
		"longer, no end":    {long + "y", []string{"1:" + long, "1:+y"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.log), iotest.OneByteReader(strings.NewReader(c.log)), iotest.DataErrReader(strings.NewReader(c.log))} {
				got, n := pieces(t, r)
				diff := cmp.Diff(c.want, got)
				check.That(t, diff == "" && n == c.lines, "%d lines, want %d (-want +got):\n%.400s", n, c.lines, diff)
			}
		})
	}
}

func TestEachLineSaysWhereItBroke(t *testing.T) {
	broken := errors.New("broken")
	n, err := eachLine(io.MultiReader(strings.NewReader("a\nb\n"), iotest.ErrReader(broken)), func(line) {})
	check.That(t, n == 2 && errors.Is(err, broken), "got %d, %v", n, err)
}

// For any bytes: lines are counted as by wc, no piece exceeds the bound or contains
// control sequences of a terminal, and only escape sequences are removed.
func FuzzEachLine(f *testing.F) {
	f.Add([]byte("a\r\nb\x1b[31mc\x1b[0m\r50%\rd"))
	f.Add([]byte("\x1b]0;title\x07\x1b]8;;x\x1b\\\x1b[\x1b"))
	f.Fuzz(linesHold)
}

// A line may have many pieces.
func TestEachLineOfManyPieces(t *testing.T) { linesHold(t, bytes.Repeat([]byte("\x1b]x\r"), 20<<10)) }

func linesHold(t *testing.T, log []byte) {
	t.Helper()
	want := bytes.Count(log, []byte{'\n'})
	if len(log) > 0 && log[len(log)-1] != '\n' {
		want++
	}
	kept, last := 0, 0
	n, err := eachLine(bytes.NewReader(log), func(l line) {
		kept += len(l.text)
		check.That(t, len(l.text) <= maxLine && !bytes.ContainsAny(l.text, "\r\n\x1b") && l.number >= last && l.number <= last+1,
			"line %d after %d: %q", l.number, last, l.text)
		last = l.number
	})
	check.That(t, err == nil && n == want && last <= n, "%d lines, the last is %d, want %d: %v", n, last, want, err)
	check.That(t, bytes.ContainsAny(log, "\r\n\x1b") || kept == len(log), "%d bytes of %d", kept, len(log))
}
