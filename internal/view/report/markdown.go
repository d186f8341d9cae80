package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"builder/internal/gates/verdict"
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

// Summary returns the table at the end of a run: a header and one row per cell.
func Summary(run Run) (header []string, rows [][]string) {
	for _, c := range run.Cells {
		rows = append(rows, []string{c.ID, state(c), dash(string(c.From)), dash(mainName(c)), dash(gates(c)), c.Seconds().String()})
	}
	return []string{"cell", "status", "from", "wheel", "gates", "time"}, rows
}

// state returns the status, with the class of an error.
func state(c Cell) string {
	if c.Error != nil && c.Error.Code != "" {
		return fmt.Sprintf("%s: %s", Errored, c.Error.Code)
	}
	return string(StatusOf(c))
}

// mainName returns the name of the first artifact, the main one for users: a wheel
// or an archive.
func mainName(c Cell) string {
	if len(c.Artifacts) > 0 {
		return c.Artifacts[0].Name
	}
	return ""
}

// gates counts the verdicts. Waived and failed gates are listed by name at the end.
func gates(c Cell) string {
	named := map[verdict.Status][]string{}
	for _, v := range c.Verdicts {
		name := v.Gate
		if v.Status == verdict.Waived && v.Waiver != nil {
			name += " until " + v.Waiver.Until
		}
		named[v.Status] = append(named[v.Status], name)
	}
	var parts []string
	for _, status := range []verdict.Status{verdict.Pass, verdict.NotMeasured, verdict.Waived, verdict.Fail} {
		names := named[status]
		if len(names) == 0 {
			continue
		}
		part := fmt.Sprintf("%d %s", len(names), status)
		if status == verdict.Waived || status == verdict.Fail {
			part += ": " + strings.Join(names, ", ")
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

func dash(s string) string { return cmp.Or(s, "-") }
