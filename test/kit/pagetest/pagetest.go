// Package pagetest checks the accessibility of pages, for tests: the rules of WCAG 2.2
// that can be checked in the text of a page and of its style. They concern screen
// readers, use without a mouse, and contrast of colours.
package pagetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A rule returns the violations on a page.
type rule func(page *node) []string

// rules lists all rules for a page.
var rules = []rule{
	head, landmarks, headings, references, pictures, fields, tables, scrolled, names, order,
}

// Faults returns all violations on a page.
func Faults(page string) []string {
	root, err := parse(page)
	if err != nil {
		return []string{err.Error()}
	}
	var problems []string
	for _, r := range rules {
		problems = append(problems, r(root)...)
	}
	return problems
}

// head requires a language and a title, for screen readers, and permits zoom.
func head(page *node) (problems []string) {
	for _, html := range page.all("html") {
		if html.attr["lang"] == "" {
			problems = append(problems, "the page does not state its language")
		}
	}
	if !slices.ContainsFunc(page.all("title"), func(n *node) bool { return n.below("head") && n.words() != "" }) {
		problems = append(problems, "the page has no title")
	}
	for _, meta := range page.all("meta") {
		if content := meta.attr["content"]; strings.Contains(content, "user-scalable=no") || strings.Contains(content, "maximum-scale") {
			problems = append(problems, "the page forbids zoom")
		}
	}
	return problems
}

// landmarks requires one main element, no content outside of landmarks, and a unique
// name for each region.
func landmarks(page *node) (problems []string) {
	if n := len(page.all("main")); n != 1 {
		problems = append(problems, fmt.Sprintf("the page has %d main elements", n))
	}
	for _, body := range page.all("body") {
		for _, part := range body.children {
			switch {
			case part.name == "header", part.name == "main", part.name == "footer", part.name == "nav", part.attr["class"] == "skip":
			default:
				problems = append(problems, part.String()+" is outside every landmark")
			}
		}
	}
	called := map[string]bool{}
	for _, n := range page.all("") {
		name := n.label(page)
		if region := n.attr["role"] == "region"; !region && (n.name != "section" || name == "") {
			continue
		}
		if name == "" || called[name] {
			problems = append(problems, fmt.Sprintf("%s has no unique name: %q", n, name))
		}
		called[name] = true
	}
	return problems
}

// headings requires one title and no skipped level.
func headings(page *node) (problems []string) {
	before := 0
	for _, n := range page.all("") {
		if len(n.name) != 2 || n.name[0] != 'h' || n.name[1] < '1' || n.name[1] > '6' {
			continue
		}
		level := int(n.name[1] - '0')
		if level > before+1 || (level == 1) != (before == 0) || n.words() == "" {
			problems = append(problems, fmt.Sprintf("%s %q follows a heading of level %d", n, n.words(), before))
		}
		before = level
	}
	if before == 0 {
		problems = append(problems, "the page has no heading")
	}
	return problems
}

// references requires unique ids and an existing target of each reference.
func references(page *node) (problems []string) {
	ids := map[string]int{}
	for _, n := range page.all("") {
		if id, ok := n.attr["id"]; ok {
			ids[id]++
		}
	}
	for id, n := range ids {
		if n > 1 {
			problems = append(problems, fmt.Sprintf("the id %q occurs %d times", id, n))
		}
	}
	for _, n := range page.all("") {
		wanted := strings.Fields(n.attr["aria-labelledby"] + " " + n.attr["for"])
		if id, inside := strings.CutPrefix(n.attr["href"], "#"); inside {
			wanted = append(wanted, id)
		}
		for _, id := range wanted {
			if ids[id] == 0 {
				problems = append(problems, fmt.Sprintf("%s refers to the missing id %q", n, id))
			}
		}
	}
	return problems
}

// pictures requires a text alternative, or aria-hidden for decoration.
func pictures(page *node) (problems []string) {
	for _, n := range page.all("") {
		picture := n.name == "svg" || n.name == "img" || n.attr["role"] == "img"
		hidden := n.attr["aria-hidden"] == "true"
		if picture && !hidden && (n.attr["role"] != "img" || n.attr["aria-label"] == "") {
			problems = append(problems, n.String()+" has no text alternative")
		}
	}
	return problems
}

// fields requires a label for each form field.
func fields(page *node) (problems []string) {
	for _, n := range page.all("") {
		field := n.name == "select" || n.name == "input" || n.name == "textarea"
		if field && n.attr["aria-label"] == "" && !n.below("label") {
			problems = append(problems, n.String()+" has no label")
		}
	}
	return problems
}

// tables requires headers with a scope for columns and rows.
func tables(page *node) (problems []string) {
	for _, table := range page.all("table") {
		columns := 0
		for _, th := range table.all("th") {
			switch th.attr["scope"] {
			case "col", "colgroup":
				columns++
			case "row", "rowgroup":
			default:
				problems = append(problems, fmt.Sprintf("%s %q has no scope", th, th.words()))
			}
		}
		if columns == 0 {
			problems = append(problems, table.String()+" has no column headers")
		}
		for _, tbody := range table.all("tbody") {
			if headed := tbody.all("th"); len(headed) > 0 && headed[0].attr["scope"] == "rowgroup" {
				continue
			}
			for _, tr := range tbody.all("tr") {
				if len(tr.all("th")) == 0 {
					problems = append(problems, fmt.Sprintf("the row %q has no header", tr.words()))
				}
			}
		}
	}
	return problems
}

// scrolled requires elements of class scroll to be focusable regions, so that the
// keyboard can scroll them.
func scrolled(page *node) (problems []string) {
	for _, n := range page.all("") {
		if n.attr["class"] == "scroll" && (n.attr["tabindex"] != "0" || n.attr["role"] != "region") {
			problems = append(problems, n.String()+" scrolls only with a mouse")
		}
	}
	return problems
}

// names requires a text for each link, button and summary.
func names(page *node) (problems []string) {
	for _, n := range page.all("") {
		chosen := n.name == "a" || n.name == "button" || n.name == "summary"
		if chosen && n.words() == "" && n.attr["aria-label"] == "" {
			problems = append(problems, n.String()+" has no text")
		}
	}
	return problems
}

// order requires the keyboard focus to follow the order of the document.
func order(page *node) (problems []string) {
	for _, n := range page.all("") {
		if i, err := strconv.Atoi(n.attr["tabindex"]); err == nil && i > 0 {
			problems = append(problems, n.String()+" takes the focus out of order")
		}
	}
	return problems
}
