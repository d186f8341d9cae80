package term_test

import (
	"fmt"
	"strings"
	"testing"

	"builder/internal/view/term"
	"builder/test/kit/check"
)

func TestLines(t *testing.T) {
	var got []string
	lines := term.NewLines(func(line string) { got = append(got, line) })
	for _, part := range []string{"a", "b\n", "\nc\nd", "e", strings.Repeat("x", 64<<10), "\nlast"} {
		n, err := fmt.Fprint(lines, part)
		check.That(t, n == len(part) && err == nil, "%d, %v", n, err)
	}
	lines.Flush()
	lines.Flush()
	want := []string{"ab", "", "c", "de" + strings.Repeat("x", 64<<10), "", "last"}
	check.Same(t, "the lines differ", want, got)
}
