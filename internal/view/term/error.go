package term

import (
	"io"
	"strings"

	"charm.land/lipgloss/v2"

	"builder/internal/base/diag"
)

// maxLogLine bounds a line of a log. Some linkers print lines of megabytes.
const maxLogLine = 500

// PrintError prints every error in err: position and message, the end of the log, the
// hint, and the path of the log. It wraps text only if w is a terminal, so that logs
// stay searchable.
func PrintError(w io.Writer, err error) {
	width := Width(w)
	long := false
	for i, e := range saidOnce(diag.All(err)) {
		wasLong := long
		long = len(e.Log) > 0
		text := describe(e, width)
		if i > 0 && (long || wasLong) {
			text = "\n" + text
		}
		// Fprint removes colour if w, NO_COLOR or TERM refuse it.
		_, _ = lipgloss.Fprint(w, text)
	}
}

// saidOnce leaves out an error that is there already, and a hint that the next error
// has too: cells of one recipe, and gates of one artifact, often share both.
func saidOnce(all []*diag.Error) []*diag.Error {
	type text struct{ message, hint, log string }
	seen := map[text]bool{}
	var once []*diag.Error
	for _, e := range all {
		t := text{e.Error(), e.Hint, e.LogPath}
		if seen[t] {
			continue
		}
		seen[t] = true
		if last := len(once) - 1; last >= 0 && once[last].Hint == e.Hint && len(once[last].Log) == 0 {
			once[last].Hint = ""
		}
		once = append(once, e)
	}
	return once
}

func describe(err *diag.Error, width int) string {
	var b strings.Builder
	b.WriteString(labelled(bad, "error: ", err.Error(), width))
	for _, line := range err.Log {
		for part := range strings.SplitSeq(strings.TrimRight(Clean(line), "\n"), "\n") {
			b.WriteString("    " + Truncate(part, maxLogLine) + "\n")
		}
	}
	if err.Hint != "" {
		b.WriteString(labelled(bold, "hint: ", err.Hint, width))
	}
	if err.LogPath != "" {
		b.WriteString(labelled(bold, "log: ", err.LogPath, 0))
	}
	return b.String()
}

// labelled returns text after a label, with further lines indented.
func labelled(style lipgloss.Style, label, text string, width int) string {
	indent := strings.Repeat(" ", len(label))
	lines := wrap(strings.TrimSpace(Clean(text)), width-len(indent))
	// The space is not styled, because some terminals would colour it.
	head := style.Render(strings.TrimSpace(label)) + " "
	return head + strings.Join(lines, "\n"+indent) + "\n"
}

// wrap breaks the lines of text at spaces. It does not break words, so that a path or a
// cell's id can be copied, and it breaks nothing if width is too small for text.
func wrap(text string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if width < 20 || lipgloss.Width(line) <= width {
			lines = append(lines, line)
			continue
		}
		lines = append(lines, fill(strings.Fields(line), width)...)
	}
	return lines
}

func fill(words []string, width int) []string {
	var lines []string
	line := ""
	for _, word := range words {
		switch {
		case line == "":
			line = word
		case lipgloss.Width(line)+1+lipgloss.Width(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}
