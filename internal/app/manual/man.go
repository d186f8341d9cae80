package manual

import (
	"fmt"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"

	"builder/internal/app/syntax"
)

// PageName returns the name of a verb's man page: builder-run for "builder run".
func PageName(words []string) string { return strings.Join(words, "-") }

// An Edition is the version and date in the footer of a page. The same edition always
// renders the same page.
type Edition struct {
	Version string
	Date    string // of its source, as in 2026-01-31; "" if unknown
}

// Page returns the section 1 man page of a verb. words is the path to the verb and
// starts with the tool.
func Page(words []string, v syntax.Verb, edition Edition) string {
	var p markdown
	p.line("%% %q %q %q %q %q", strings.ToUpper(PageName(words)), "1", edition.Date, words[0]+" "+edition.Version, words[0]+" manual")
	p.line("\n# NAME\n\n%s - %s", PageName(words), inert(v.Summary))
	spelled := strings.Join(words, " ")
	p.line("\n# SYNOPSIS\n\n**%s**%s", spelled, inert(strings.TrimPrefix(usage(words, v), spelled)))
	if v.About != "" {
		p.line("\n# DESCRIPTION")
		for _, b := range blocksOf(v.About) {
			p.block(b)
		}
	}
	p.list("COMMANDS", verbItems(v.Own()))
	p.list(kindOf(v)+"S", verbItems(recipesOf(v)))
	p.list("OPTIONS", flagItems(v.Options()))
	for _, r := range recipesOf(v) {
		p.list("AXES OF "+strings.ToUpper(r.Name), flagItems(axesOf(r)))
	}
	p.list("AXES", flagItems(axesOf(v)))
	if len(v.Examples) > 0 {
		p.line("\n# EXAMPLES")
		for _, e := range v.Examples {
			p.line("\n%s:", inert(e.Does))
			p.block(block{[]string{e.Line}, true})
		}
	}
	var exits []item
	for _, e := range v.Exits {
		exits = append(exits, item{fmt.Sprint(e.Code), e.Means})
	}
	p.list("EXIT STATUS", exits)
	p.line("\n# SEE ALSO\n\n%s", seeAlso(words, v))
	return string(md2man.Render([]byte(strings.ReplaceAll(p.String(), "&lt;", `\<`)))) // md2man does not decode entities
}

// An item is a term and its meaning.
type item struct{ term, means string }

func verbItems(verbs []syntax.Verb) (items []item) {
	for _, v := range verbs {
		items = append(items, item{v.Name, v.Summary})
	}
	return items
}

func flagItems(flags []syntax.Flag) (items []item) {
	for _, f := range flags {
		items = append(items, item{f.Spelling(), about(f)})
	}
	return items
}

// list writes a section of terms and their meanings, unless it is empty.
func (p *markdown) list(section string, items []item) {
	if len(items) == 0 {
		return
	}
	p.line("\n# %s", section)
	for _, i := range items {
		p.line("\n**%s**\n: %s", inert(i.term), inert(strings.Join(strings.Fields(i.means), " ")))
	}
}

// seeAlso lists the man pages of the parent verb and the subverbs.
func seeAlso(words []string, v syntax.Verb) string {
	var pages []string
	if len(words) > 1 {
		pages = append(pages, PageName(words[:len(words)-1]))
	}
	for _, below := range v.Own() {
		pages = append(pages, PageName(append(words[:len(words):len(words)], below.Name)))
	}
	for i, page := range pages {
		pages[i] = "**" + page + "**(1)"
	}
	return strings.Join(pages, ",\n")
}
