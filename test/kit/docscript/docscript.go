// Package docscript runs the commands in a documentation page and compares their output
// with the page.
//
// A block in the language console is a session. Lines that begin with "$ " are shell
// commands. A command that ends in a backslash continues on the next line. The lines
// below a command are its output. Comments directly above a block, invisible on the
// page, are marks:
//
//	<!-- exit: 2 -->             the last command exits with this code instead of 0
//	<!-- varies: key, date -->   these parts of the output differ between hosts, see variations
//	<!-- cut -->                 a line of three dots stands for any number of lines
//	<!-- e2e -->                 needs a real engine: only the tests of package e2e run it
//	<!-- always -->              all tests run it, because later blocks need it
//	<!-- elsewhere: REASON -->   cannot be run here, for this reason
//	<!-- file: PATH -->          the block is part of the file at this path, relative to the page
//	<!-- write: PATH -->         the block is written to this path, for the commands below it
//
// An unnecessary mark is an error.
package docscript

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"builder/internal/base/diag"
	"builder/test/kit/markdown"
)

// Kind is the treatment of a block by tests.
type Kind int

// The kinds. Text is not tested: a format, a tree, a log.
const (
	Text Kind = iota
	Run
	E2E
	Always
	Elsewhere
	File
	Write
)

// A Block is one block of a page with its marks.
type Block struct {
	markdown.Block
	Kind     Kind
	About    string // the path of a file, or the reason not to run the block
	Exit     int    // exit code of the last command
	Varies   []Variation
	Cut      bool
	Commands []Command // of a console
}

// A Command is one command of a console: its line number, the text for the shell, and
// its output on the page.
type Command struct {
	Line  int
	Text  string
	Shown []string
}

// Variation is text that differs between hosts, days or commits. It is replaced with a
// fixed text before a comparison.
type Variation struct {
	Name    string
	About   string
	pattern *regexp.Regexp
}

// variations lists all variations supported in marks, in the order of application.
var variations = []Variation{
	{"id", "ids of signing keys", regexp.MustCompile(`[0-9A-Za-z+/]{43}=`)},
	{"key", "digests and keys", regexp.MustCompile(`\b([0-9a-f]{64}|[0-9a-f]{12})\b`)},
	{"clock", "the time of day before a line", regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d `)},
	{"seconds", "durations", regexp.MustCompile(`\b((\d+h)?\d+m\d+|\d+\.\d+) ?s\b`)},
	{"date", "days and times", regexp.MustCompile(`\b20\d\d-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?Z?)?`)},
	{"signer", "the digest of a public key", regexp.MustCompile(`[0-9A-Za-z+/]{43}=`)},
	{"size", "sizes of files", regexp.MustCompile(`\b\d+(\.\d+)? ?([kKMGT]?B|bytes)\b`)},
	{"version", "the version of builder", regexp.MustCompile(`\bdevel\S*|\bv\d+\.\d+\.\d+\S*`)},
	{"columns", "the width of columns", regexp.MustCompile(` {2,}`)},
}

// langs lists the languages of blocks. All except text and console show a file.
var langs = []string{"console", "diff", "go", "json", "text", "yaml"}

// Of parses the blocks of a page. Errors have class [diag.Usage].
func Of(p markdown.Page) ([]Block, error) {
	var blocks []Block
	var errs []error
	for _, raw := range p.Blocks {
		b := Block{Block: raw}
		problem := func(line int, format string, args ...any) {
			errs = append(errs, diag.At(diag.Pos{File: p.Path, Line: line}, format, args...))
		}
		if !slices.Contains(langs, b.Lang) {
			problem(b.Line, "the language of the block is %q, not one of %s", b.Lang, strings.Join(langs, ", "))
		}
		if b.Lang == "console" {
			b.Kind = Run
		}
		for _, m := range raw.Marks {
			if err := b.mark(m.Text); err != nil {
				problem(m.Line, "%s: %v", m.Text, err)
			}
		}
		if err := b.read(); err != nil {
			problem(b.Line, "%v", err)
		}
		blocks = append(blocks, b)
	}
	return blocks, errors.Join(errs...)
}

// mark applies one mark to the block.
func (b *Block) mark(text string) (err error) {
	word, about, _ := strings.Cut(text, ": ")
	switch word {
	case "exit":
		b.Exit, err = strconv.Atoi(about)
		return err
	case "varies":
		return b.vary(strings.Split(about, ", "))
	case "cut":
		b.Cut = true
	case "e2e":
		return b.be(E2E, "")
	case "always":
		return b.be(Always, "")
	case "elsewhere":
		return b.be(Elsewhere, about)
	case "file":
		return b.be(File, about)
	case "write":
		return b.be(Write, about)
	default:
		return errors.New("unknown mark")
	}
	return nil
}

// be sets the kind of the block.
func (b *Block) be(k Kind, about string) error {
	b.Kind, b.About = k, about
	switch {
	case k > Always && about == "":
		return errors.New("the mark needs a path or a reason")
	case (k == File || k == Write) == (b.Lang == "console"):
		return fmt.Errorf("a block of %s cannot have this mark", b.Lang)
	}
	return nil
}

// vary adds variations. Each must occur in the block.
func (b *Block) vary(names []string) error {
	text := strings.Join(b.Lines, "\n")
	for _, v := range variations {
		if !slices.Contains(names, v.Name) {
			continue
		}
		if !v.pattern.MatchString(text) {
			return fmt.Errorf("the block has no %s", v.About)
		}
		b.Varies = append(b.Varies, v)
	}
	if len(b.Varies) != len(names) {
		return errors.New("known variations are " + strings.Join(variationNames(), ", "))
	}
	return nil
}

func variationNames() []string {
	names := map[string]bool{}
	for _, v := range variations {
		names[v.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// read parses the commands of a console. It rejects commands in other blocks.
func (b *Block) read() error {
	for i, line := range b.Lines {
		command, begins := strings.CutPrefix(line, "$ ")
		last := len(b.Commands) - 1
		switch {
		case b.Lang != "console":
			if begins || strings.HasPrefix(line, "builder ") {
				return errors.New("move commands to a block of console")
			}
		case begins:
			b.Commands = append(b.Commands, Command{Line: b.Line + 1 + i, Text: command})
		case last < 0:
			return errors.New("a console has to begin with a command")
		case len(b.Commands[last].Shown) == 0 && strings.HasSuffix(b.Commands[last].Text, `\`):
			b.Commands[last].Text += "\n" + line
		default:
			b.Commands[last].Shown = append(b.Commands[last].Shown, line)
		}
	}
	hidden := func(c Command) bool { return b.Cut && slices.Equal(c.Shown, []string{"..."}) }
	switch dotted := slices.Contains(b.Lines, "..."); {
	case slices.ContainsFunc(b.Commands, hidden):
		return errors.New("the whole output of a command is cut")
	case b.Lang == "console" && len(b.Commands) == 0:
		return errors.New("the console is empty")
	case b.Cut && !dotted:
		return errors.New("the mark cuts nothing: no line is three dots")
	case b.Lang != "console" && (b.Cut || b.Exit != 0 || b.Varies != nil):
		return errors.New("only a console can have this mark")
	case b.Lang != "console" && b.Lang != "text" && b.Kind == Text:
		return errors.New("name the file: <!-- file: PATH -->, or <!-- write: PATH -->")
	}
	return nil
}
