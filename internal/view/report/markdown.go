package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// maxText bounds one text of a summary, in runes.
const maxText = 400

// Markdown returns the summary of a run as a page: the headline, the table, and the
// reasons why cells did not pass. Text of the run is escaped and never becomes markup.
func Markdown(run Run) string {
	var page strings.Builder
	fmt.Fprintf(&page, "### builder: %s\n\n", inert(Headline(run)))
	header, rows := Summary(run)
	fmt.Fprintf(&page, "%s%s", row(header), strings.Repeat("| --- ", len(header))+"|\n")
	for _, cells := range rows {
		page.WriteString(row(cells))
	}
	for i, r := range Reasons(run) {
		if i == 0 {
			page.WriteString("\n")
		}
		page.WriteString(r.lines())
	}
	return page.String()
}

// lines returns a reason as an item of a list, with its cause and its remedy below it.
func (r Reason) lines() string {
	of := r.Cells[0]
	if more := len(r.Cells) - 1; more > 0 {
		of += fmt.Sprintf(" and %d more", more)
	}
	text := "- " + inert(of+": "+r.What+": "+r.Text) + "\n"
	for _, line := range append(slices.Clone(r.Cause), r.Remedy) {
		if line != "" {
			text += "  - " + inert(line) + "\n"
		}
	}
	return text
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
