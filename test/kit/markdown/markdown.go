// Package markdown parses the parts of a page that tests check: fenced blocks with the
// marks above them, headings, links, and code in the text.
package markdown

import (
	"errors"
	"os"
	"regexp"
	"strings"

	"builder/internal/base/diag"
)

// A Page is the parsed content of one file. Lines count from 1.
type Page struct {
	Path     string
	Lines    []string
	Blocks   []Block
	Headings []Text
	Links    []Text // targets, as written
	Code     []Text // texts between backticks outside blocks
}

// Text is a text with its line number.
type Text struct {
	Line int
	Text string
}

// A Block is the text between two fences. Line is the line of the first fence. Marks
// are the comments directly above it, which are invisible on the page.
type Block struct {
	Line  int
	Lang  string
	Marks []Text
	Lines []string
}

// Read reads the page at a path. Errors in the page have class [diag.Usage].
func Read(path string) (Page, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Page{}, err
	}
	return Parse(path, string(text))
}

var (
	comment = regexp.MustCompile(`^<!-- (.*) -->$`)
	heading = regexp.MustCompile(`^#{1,6} +(.*?)(?: #+)?$`)
	item    = regexp.MustCompile(`^ *(?:[-*+]|\d+\.) `)
	code    = regexp.MustCompile("``.+?``|`[^`]+`")
	link    = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)`)
)

// Parse parses a page. path is for error messages. An indented block without fences is
// an error, because it has no language and would not be tested.
func Parse(path, text string) (Page, error) {
	p := Page{Path: path, Lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	var errs []error
	var marks []Text
	open, inList := -1, false // open is the index of the unfinished block
	for i, line := range p.Lines {
		n := i + 1
		fence := strings.HasPrefix(line, "```")
		m := comment.FindStringSubmatch(line)
		switch {
		case open >= 0 && line == "```":
			open = -1
		case open >= 0:
			p.Blocks[open].Lines = append(p.Blocks[open].Lines, line)
		case fence:
			open = len(p.Blocks)
			p.Blocks = append(p.Blocks, Block{Line: n, Lang: strings.TrimPrefix(line, "```"), Marks: marks})
			marks = nil
		case m != nil:
			marks = append(marks, Text{n, m[1]})
		case strings.HasPrefix(line, "    ") && !inList:
			errs = append(errs, diag.At(diag.Pos{File: path, Line: n}, "a block without fences").
				WithHint("fence it with ```console, ```text or its language"))
		default:
			marks = nil
			inList = item.MatchString(line) || inList && (line == "" || line[0] == ' ')
			p.prose(n, line)
		}
	}
	if open >= 0 {
		errs = append(errs, diag.At(diag.Pos{File: path, Line: p.Blocks[open].Line}, "the block has no end"))
	}
	return p, errors.Join(errs...)
}

// prose adds the headings, code and links of a line outside blocks.
func (p *Page) prose(n int, line string) {
	if m := heading.FindStringSubmatch(line); m != nil {
		p.Headings = append(p.Headings, Text{n, m[1]})
	}
	for _, span := range code.FindAllString(line, -1) {
		p.Code = append(p.Code, Text{n, strings.TrimSpace(strings.Trim(span, "`"))})
	}
	for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, "`"), -1) {
		p.Links = append(p.Links, Text{n, m[1]})
	}
}

var (
	linked    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	unspoken  = regexp.MustCompile(`[^\p{L}\p{N}_\s-]`)
	separator = regexp.MustCompile(`[-\s]+`)
)

// Anchor returns the anchor of a heading on the site.
func Anchor(heading string) string {
	heading = linked.ReplaceAllString(heading, "$1")
	return separator.ReplaceAllString(strings.ToLower(strings.TrimSpace(unspoken.ReplaceAllString(heading, ""))), "-")
}
