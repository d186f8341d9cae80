package report

import (
	"fmt"
	"strings"
	"unicode"

	"builder/internal/base/diag"
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
	rest := 0
	for _, cells := range rows {
		if page.Len() > maxMarkdown/2 {
			rest++
			continue
		}
		page.WriteString(row(cells))
	}
	more(&page, rest, "cells")
	writeFaults(&page, diag.All(Err(run)))
	return page.String()
}

func writeFaults(page *strings.Builder, errs []*diag.Error) {
	if len(errs) > 0 {
		page.WriteString("\n")
	}
	rest := 0
	for _, err := range errs {
		if page.Len() > maxMarkdown {
			rest++
			continue
		}
		fmt.Fprintf(page, "- %s\n", inert(err.Error()))
		if err.Hint != "" {
			fmt.Fprintf(page, "  - hint: %s\n", inert(err.Hint))
		}
	}
	more(page, rest, "faults")
}

// more prints how many items were left out.
func more(page *strings.Builder, n int, what string) {
	if n > 0 {
		fmt.Fprintf(page, "\n%d more %s are in run.json.\n", n, what)
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
