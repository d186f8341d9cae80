package manual

import (
	"fmt"
	"strings"

	"builder/internal/syntax"
)

// PageName is the name of a verb's man page: builder-run for "builder run".
func PageName(words []string) string { return strings.Join(words, "-") }

// An Edition is what stands at the foot of a page: of the tool, so that the same
// tool writes the same page.
type Edition struct {
	Version string
	Date    string // of its source, as in 2026-01-31; "" where nobody knows
}

// Page returns the man page of section 1 of a verb, in the macros of man(7). words
// lead to it, the first is the tool.
func Page(words []string, v syntax.Verb, edition Edition) string {
	var p roff
	p.line(fmt.Sprintf(`.TH "%s" "1" "%s" "%s" "%s"`, // a date with escapes is none to mandoc
		quoted(strings.ToUpper(PageName(words))), edition.Date, quoted(words[0]+" "+edition.Version), quoted(words[0]+" manual")))
	p.section("NAME")
	p.line(fmt.Sprintf(`%s \- %s`, escape(PageName(words)), escape(v.Summary)))
	p.section("SYNOPSIS")
	spelled := strings.Join(words, " ")
	p.line(`\fB` + escape(spelled) + `\fR` + escape(strings.TrimPrefix(usage(words, v), spelled)))
	if v.About != "" {
		p.section("DESCRIPTION")
		p.text(v.About)
	}
	p.verbs("COMMANDS", v.Own())
	p.verbs(kindOf(v)+"S", recipesOf(v))
	p.flags("OPTIONS", v.Options())
	for _, r := range recipesOf(v) {
		p.flags("AXES OF "+strings.ToUpper(r.Name), axesOf(r))
	}
	p.flags("AXES", axesOf(v))
	p.examples(v.Examples)
	p.exits(v.Exits)
	p.section("SEE ALSO")
	p.line(seeAlso(words, v))
	return p.String()
}

// seeAlso names the pages above and below.
func seeAlso(words []string, v syntax.Verb) string {
	var pages []string
	if len(words) > 1 {
		pages = append(pages, PageName(words[:len(words)-1]))
	}
	for _, below := range v.Own() {
		pages = append(pages, PageName(append(words[:len(words):len(words)], below.Name)))
	}
	for i, page := range pages {
		pages[i] = `\fB` + escape(page) + `\fR(1)`
	}
	return strings.Join(pages, ",\n")
}

// roff is a page that is being written.
type roff struct{ strings.Builder }

func (p *roff) line(text string) { p.WriteString(text + "\n") }

func (p *roff) section(name string) { p.line(`.SH "` + quoted(name) + `"`) }

// quoted is text as it stands between the quotes of an argument.
func quoted(text string) string { return strings.ReplaceAll(escape(text), `"`, `\(dq`) }

// text writes paragraphs.
func (p *roff) text(text string) {
	for i, b := range blocksOf(text) {
		if i > 0 {
			p.line(".PP")
		}
		if b.literal {
			p.literal(b.lines)
			continue
		}
		p.words(strings.Join(b.lines, " "))
	}
}

// width is that of a line of the source, which no reader sees.
const width = 72

// words writes running text.
func (p *roff) words(text string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			p.line(escape(line))
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	p.line(escape(line))
}

// literal writes lines as they are, indented.
func (p *roff) literal(lines []string) {
	p.line(".RS 4")
	p.line(".nf")
	for _, line := range lines {
		if line == "" {
			p.line(".sp")
			continue
		}
		p.line(escape(line))
	}
	p.line(".fi")
	p.line(".RE")
}

func (p *roff) verbs(section string, verbs []syntax.Verb) {
	if len(verbs) == 0 {
		return
	}
	p.section(section)
	for _, v := range verbs {
		p.item(v.Name, v.Summary)
	}
}

func (p *roff) flags(section string, flags []syntax.Flag) {
	if len(flags) == 0 {
		return
	}
	p.section(section)
	for _, f := range flags {
		p.item(f.Spelling(), about(f))
	}
}

// item writes a term and what it means.
func (p *roff) item(term, means string) {
	p.line(".TP")
	p.line(`\fB` + escape(term) + `\fR`)
	p.words(means)
}

func (p *roff) examples(examples []syntax.Example) {
	if len(examples) == 0 {
		return
	}
	p.section("EXAMPLES")
	for i, e := range examples {
		if i > 0 {
			p.line(".PP")
		}
		p.words(e.Does + ":")
		p.line(".PP")
		p.literal([]string{e.Line})
	}
}

func (p *roff) exits(exits []syntax.Exit) {
	p.section("EXIT STATUS")
	for _, e := range exits {
		p.item(fmt.Sprint(e.Code), e.Means)
	}
}

// escape writes text so that roff shows it and reads nothing into it.
func escape(text string) string {
	var b strings.Builder
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		b.WriteString(`\&`)
	}
	for _, r := range text {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r == '\'':
			b.WriteString(`\(aq`)
		case r == '`':
			b.WriteString(`\(ga`)
		case r == '^':
			b.WriteString(`\(ha`)
		case r == '~':
			b.WriteString(`\(ti`)
		case r > '~':
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
