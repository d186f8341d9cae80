package term

import (
	"io"
	"strings"

	"charm.land/lipgloss/v2"
)

const (
	gap       = "  "
	minColumn = 12 // a wrapped line is easier to read than a narrower column
)

// Table prints rows under a header in aligned columns. If they need more than width
// columns, it wraps the widest. A width of 0 or less never wraps, as is right for a
// file or a pipe (see [Width]).
func Table(w io.Writer, width int, header []string, rows [][]string) {
	table := append([][]string{header}, rows...)
	table = cleaned(table)
	widths := fit(columns(table), width)
	var b strings.Builder
	for i, row := range table {
		style := lipgloss.NewStyle()
		if i == 0 {
			style = bold
		}
		for _, line := range layOut(row, widths) {
			b.WriteString(style.Render(line) + "\n")
		}
	}
	// Fprint removes the bold style if w, NO_COLOR or TERM refuse it.
	_, _ = lipgloss.Fprint(w, b.String())
}

func cleaned(table [][]string) [][]string {
	out := make([][]string, len(table))
	for i, row := range table {
		for _, cell := range row {
			out[i] = append(out[i], OneLine(cell))
		}
	}
	return out
}

// columns returns the natural width of each column.
func columns(table [][]string) []int {
	var widths []int
	for _, row := range table {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], lipgloss.Width(cell))
		}
	}
	return widths
}

// fit narrows the widest columns until all fit or all have the minimum width.
func fit(widths []int, width int) []int {
	total := len(gap) * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; width > 0 && total > width; total-- {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= minColumn {
			break
		}
		widths[widest]--
	}
	return widths
}

// layOut returns the lines of a row, as many as its tallest cell has.
func layOut(row []string, widths []int) []string {
	var lines []string
	for column, cell := range row {
		for i, part := range strings.Split(lipgloss.Wrap(cell, widths[column], "-_+"), "\n") {
			if i == len(lines) {
				lines = append(lines, "")
			}
			lines[i] = padded(lines[i], widths[:column]) + strings.TrimSpace(part)
		}
	}
	return lines
}

// padded pads line to the end of columns with these widths. Padding before a cell instead of
// after it leaves no blanks at the end of a line.
func padded(line string, widths []int) string {
	missing := -lipgloss.Width(line)
	for _, w := range widths {
		missing += w + len(gap)
	}
	return line + strings.Repeat(" ", max(0, missing))
}
