package term_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"

	"builder/internal/base/diag"
	"builder/internal/view/term"
	"builder/test/kit/check"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain ✓ 長い":                     "plain ✓ 長い",
		"\x1b[1;31mred\x1b[0m":           "red",
		"\x1b]8;;http://x\x1b\\link":     "link",
		"\x1b]0;title\x07text":           "text",
		"\x1b]52;never ended":            "]52;never ended",
		"\x1b\x1b[m[2Jx":                 "[2Jx",
		"\x1bPq#0\x1b\\sixel":            "sixel",
		"\x1b(B\x1b=\x1b7x":              "x",
		"\u009b2Jx":                      "x",
		"\x9b2Jx":                        "\uFFFD2Jx",
		"a\tb\x00\x07\x7fc":              "a bc",
		"10%\r20%\r\nend\n":              "10%\n20%\nend\n",
		"\u202eesrever\u2066 \ufeffbom":  "esrever bom",
		"line\u2028separator":            "line separator",
		"\x1b[38:2::255:0:0mcolon\x1b[m": "colon",
	} {
		check.Same(t, in, want, term.Clean(in))
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b[31mred\x1b]0;t\x07\r\n\u009b")
	f.Fuzz(func(t *testing.T, s string) {
		got := term.Clean(s)
		check.That(t, !strings.ContainsAny(got, "\x1b\x07\r\u009b\u009d\u202e"), "%q: got %q", s, got)
		check.Same(t, "cleaned twice", got, term.Clean(got))
	})
}

func TestPrintError(t *testing.T) {
	build := diag.Errorf(diag.Build, "step build: exit 1").WithHint("RCCL is not installed;\nadd rccl-dev")
	build.Log = []string{"cc a.c", "\x1b[31ma.c:1: error: no rccl.h\x1b[0m\r\n"}
	build.LogPath = "out/horovod/build.log"
	err := errors.Join(
		diag.At(diag.Pos{File: "recipes/horovod.yaml", Line: 14, Column: 11}, "quote the version 2.10"),
		fmt.Errorf("building horovod: %w", build),
		errors.New("plain"),
	)
	var b bytes.Buffer
	term.PrintError(&b, err)
	want := `error: recipes/horovod.yaml:14:11: quote the version 2.10

error: building horovod: step build: exit 1
    cc a.c
    a.c:1: error: no rccl.h
hint: RCCL is not installed;
      add rccl-dev
log: out/horovod/build.log

error: plain
`
	check.Same(t, "values", want, b.String())
	b.Reset()
	if term.PrintError(&b, nil); b.Len() > 0 {
		t.Errorf("no error prints %q", b.String())
	}
}

// TestPrintErrorOnce: what several errors share is printed once.
func TestPrintErrorOnce(t *testing.T) {
	refused := func(gate, hint string) error {
		return diag.At(diag.Pos{File: "a.whl"}, "gate %s: fail: no", gate).WithHint("%s", hint)
	}
	var b bytes.Buffer
	term.PrintError(&b, errors.Join(refused("x", "build"), refused("y", "build"), refused("x", "build"), refused("z", "ask"), refused("y", "ask")))
	want := `error: a.whl: gate x: fail: no
error: a.whl: gate y: fail: no
hint: build
error: a.whl: gate z: fail: no
error: a.whl: gate y: fail: no
hint: ask
`
	check.Same(t, "values", want, b.String())
}

func TestTable(t *testing.T) {
	header := []string{"cell", "status", "wheel"}
	rows := [][]string{
		{"horovod-0.28.1+rocm5.7-tf2.13.0-cp311-gfx90a", "pass", "horovod-0.28.1+rocm5.7-cp311-cp311-linux_x86_64.whl"},
		{"nccl\n長い", "error"},
		{},
	}
	var b bytes.Buffer
	term.Table(&b, 0, header, rows)
	want := `cell                                          status  wheel
horovod-0.28.1+rocm5.7-tf2.13.0-cp311-gfx90a  pass    horovod-0.28.1+rocm5.7-cp311-cp311-linux_x86_64.whl
nccl 長い                                     error
`
	check.Same(t, "values", want, b.String())
	for _, width := range []int{60, 80, 100} {
		b.Reset()
		term.Table(&b, width, header, rows)
		t.Logf("%d columns:\n%s", width, b.String())
		for line := range strings.Lines(b.String()) {
			got := lipgloss.Width(strings.TrimSuffix(line, "\n"))
			check.That(t, got <= width, "%d of %d columns: %s", got, width, line)
		}
	}
}

func TestWrap(t *testing.T) {
	const text = "a path /usr/lib/x86_64-linux-gnu/libnccl.so.2 stays whole\n  and  short lines stay"
	for width, want := range map[int]string{
		0:  text,
		24: "a path\n/usr/lib/x86_64-linux-gnu/libnccl.so.2\nstays whole\n  and  short lines stay",
		60: text,
	} {
		check.Same(t, fmt.Sprintf("width %d", width), want, strings.Join(term.Wrap(text, width), "\n"))
	}
}

func TestIndented(t *testing.T) {
	for width, want := range map[int]string{
		0:  "  GPU0   X    PIX\n  the quick brown fox jumps over the dog\n",
		30: "  GPU0   X    PIX\n  the quick brown fox jumps\n  over the dog\n",
	} {
		var b bytes.Buffer
		term.Indented(&b, width, "GPU0   X    PIX  ")
		term.Indented(&b, width, "the quick \x1b[2Jbrown fox jumps over the dog")
		check.Same(t, fmt.Sprintf("width %d", width), want, b.String())
	}
}

func TestLabelled(t *testing.T) {
	var b bytes.Buffer
	term.Labelled(&b, 30, "rdma", "look at cables, \x1b]0;x\x07switch and subnet manager")
	want := "rdma: look at cables, switch\n      and subnet manager\n"
	check.Same(t, "values", want, b.String())
}

func TestOneLineKeepsSpaces(t *testing.T) {
	for text, want := range map[string]string{"a\n  b\n\n": "a b", "not \"x  y\": the closest is \"x y\"": "not \"x  y\": the closest is \"x y\"", " \n ": ""} {
		check.Same(t, text, want, term.OneLine(text))
	}
}

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
