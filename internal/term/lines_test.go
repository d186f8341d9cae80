package term_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"builder/internal/term"
)

func TestLines(t *testing.T) {
	var got []string
	lines := term.NewLines(func(line string) { got = append(got, line) })
	for _, part := range []string{"a", "b\n", "\nc\nd", "e", strings.Repeat("x", 64<<10), "\nlast"} {
		if n, err := fmt.Fprint(lines, part); n != len(part) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	lines.Flush()
	lines.Flush()
	want := []string{"ab", "", "c", "de" + strings.Repeat("x", 64<<10), "", "last"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the lines differ (-want +got):\n%s", diff)
	}
}

// A sequence that comes in two parts is one.
func TestCleaned(t *testing.T) {
	var b bytes.Buffer
	w := term.Cleaned(&b)
	for _, part := range []string{"a \x1b[3", "1mred\x1b[0m\r\nb\x1b]0;ow", "ned\x07\n10%\r20%"} {
		fmt.Fprint(w, part)
	}
	w.Flush()
	if want := "a red\nb\n10%\n20%\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
