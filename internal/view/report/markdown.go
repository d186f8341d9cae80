package report

import (
	"fmt"
	"strings"
	"unicode"
)

// The bounds of a summary. GitHub Actions accepts one megabyte per step.
const (
	maxMarkdown = 900 << 10
	maxText     = 400 // runes of one text
)

// Markdown returns the summary of a run as a page: the headline, the table, and the
// reasons why cells did not pass. Text of the run is escaped and never becomes markup.
func Markdown(run Run) string {
	var page strings.Builder
	fmt.Fprintf(&page, "### builder: %s\n\n", inert(Headline(run)))
	header, rows := Summary(run)
	fmt.Fprintf(&page, "%s%s", row(header), strings.Repeat("| --- ", len(header))+"|\n")
	var lines, faults []string
	for _, cells := range rows {
		lines = append(lines, row(cells))
	}
	for _, r := range Reasons(run) {
		faults = append(faults, r.lines())
	}
	add(&page, lines, maxMarkdown/2, "cells")
	if len(faults) > 0 {
		page.WriteString("\n")
	}
	add(&page, faults, maxMarkdown, "faults")
	return page.String()
}

// lines returns a reason as an item of a list, with its remedy below it.
func (r Reason) lines() string {
	of := r.Cells[0]
	if more := len(r.Cells) - 1; more > 0 {
		of += fmt.Sprintf(" and %d more", more)
	}
	text := "- " + inert(of+": "+r.What+": "+r.Text) + "\n"
	if r.Remedy != "" {
		text += "  - " + inert(r.Remedy) + "\n"
	}
	return text
}

// add adds lines to a page until it has a size, and says how many are left.
func add(page *strings.Builder, lines []string, size int, what string) {
	for i, line := range lines {
		if page.Len() > size {
			fmt.Fprintf(page, "\n%d more %s are in run.json.\n", len(lines)-i, what)
			return
		}
		page.WriteString(line)
	}
}

func row(cells []string) string {
	var line strings.Builder
	for _, c := range cells {
		line.WriteString("| " + inert(c) + " ")
	}
	return line.String() + "|\n"
}

// inert escapes text so that Markdown and HTML show it unchanged.
func inert(text string) string {
	var out strings.Builder
	n := 0
	for _, r := range text {
		if n++; n > maxText {
			return out.String() + "…"
		}
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), strings.ContainsRune(" .,:;-+/()%=…", r):
			out.WriteRune(r)
		case unicode.IsPrint(r):
			fmt.Fprintf(&out, "&#%d;", r)
		default:
			out.WriteByte(' ')
		}
	}
	return out.String()
}
