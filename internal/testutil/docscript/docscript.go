// Package docscript does what the blocks of a page show, and demands that the page
// tells the truth.
//
// A block in the language console is a session: lines that begin with "$ " are
// commands for a shell (one that ends in a backslash goes on in the next line), the
// lines below are what they print. Comments directly above a block say what is
// particular about it; nobody sees them on the page:
//
//	<!-- exit: 2 -->             the last command ends with this code, and not with 0
//	<!-- varies: key, date -->   what differs from host to host, see variations
//	<!-- cut -->                 a line of three dots stands for any number of lines
//	<!-- e2e -->                 it needs a real engine: the story of package e2e runs it
//	<!-- always -->              it is run in both, for what stands below it
//	<!-- elsewhere: REASON -->   it cannot be run here, because of that
//	<!-- file: PATH -->          the block is a part of the file at this path beside the page
//	<!-- write: PATH -->         the block is written to this path, for the commands below it
//
// A mark that is not needed is a fault.
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
	"builder/internal/testutil/markdown"
)

// Kind is what a test does with a block.
type Kind int

// The kinds. Text is shown to people and no more: a format, a tree, a log.
const (
	Text Kind = iota
	Run
	E2E
	Always
	Elsewhere
	File
	Write
)

// A Block is one block of a page, and what its marks say.
type Block struct {
	markdown.Block
	Kind     Kind
	About    string // the path of a file, or the reason why a block is not run
	Exit     int    // code of the last command
	Varies   []Variation
	Cut      bool
	Commands []Command // of a console
}

// A Command is one of a console: its line, the words for the shell, and what the
// page says that it prints.
type Command struct {
	Line  int
	Text  string
	Shown []string
}

// Variation is something that differs between two hosts, two days or two commits.
// Before texts are compared it is written the same way in both.
type Variation struct {
	Name    string
	About   string
	pattern *regexp.Regexp
}

// variations are all that a page may leave open, in the order in which they are
// applied.
var variations = []Variation{
	{"key", "digests and keys", regexp.MustCompile(`\b([0-9a-f]{64}|[0-9a-f]{12})\b`)},
	{"clock", "the time of day before a line", regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d `)},
	{"seconds", "how long something took", regexp.MustCompile(`\b((\d+h)?\d+m\d+|\d+\.\d+) ?s\b`)},
	{"date", "days and times", regexp.MustCompile(`\b20\d\d-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?Z?)?`)},
	{"signer", "the digest of a public key", regexp.MustCompile(`[0-9A-Za-z+/]{43}=`)},
	{"size", "sizes of files", regexp.MustCompile(`\b\d+(\.\d+)? ?([kKMGT]?B|bytes)\b`)},
	{"version", "the version of builder", regexp.MustCompile(`\bdevel\S*|\bv\d+\.\d+\.\d+\S*`)},
	{"columns", "the width of columns", regexp.MustCompile(` {2,}`)},
}

// langs are the languages of blocks; all but text and console show a file.
var langs = []string{"console", "diff", "go", "json", "text", "yaml"}

// Of reads the blocks of a page. Faults have the class of [diag.Usage].
func Of(p markdown.Page) ([]Block, error) {
	var blocks []Block
	var faults []error
	for _, raw := range p.Blocks {
		b := Block{Block: raw}
		fault := func(line int, format string, args ...any) {
			faults = append(faults, diag.At(diag.Pos{File: p.Path, Line: line}, format, args...))
		}
		if !slices.Contains(langs, b.Lang) {
			fault(b.Line, "the language of the block is %q, not one of %s", b.Lang, strings.Join(langs, ", "))
		}
		if b.Lang == "console" {
			b.Kind = Run
		}
		for _, m := range raw.Marks {
			if err := b.mark(m.Text); err != nil {
				fault(m.Line, "%s: %v", m.Text, err)
			}
		}
		if err := b.read(); err != nil {
			fault(b.Line, "%v", err)
		}
		blocks = append(blocks, b)
	}
	return blocks, errors.Join(faults...)
}

// mark takes one mark into the block.
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
		return errors.New("this is no mark")
	}
	return nil
}

// be makes the block one of a kind.
func (b *Block) be(k Kind, about string) error {
	b.Kind, b.About = k, about
	switch {
	case k > Always && about == "":
		return errors.New("say which, or why")
	case (k == File || k == Write) == (b.Lang == "console"):
		return fmt.Errorf("a block of %s cannot be that", b.Lang)
	}
	return nil
}

// vary notes what may differ: each variation must stand in the block.
func (b *Block) vary(names []string) error {
	text := strings.Join(b.Lines, "\n")
	for _, v := range variations {
		if !slices.Contains(names, v.Name) {
			continue
		}
		if !v.pattern.MatchString(text) {
			return fmt.Errorf("nothing in the block is %s", v.About)
		}
		b.Varies = append(b.Varies, v)
	}
	if len(b.Varies) != len(names) {
		return errors.New("known are " + strings.Join(variationNames(), ", "))
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

// read takes the commands of a console apart, and looks that a text is none.
func (b *Block) read() error {
	for i, line := range b.Lines {
		command, begins := strings.CutPrefix(line, "$ ")
		last := len(b.Commands) - 1
		switch {
		case b.Lang != "console":
			if begins || strings.HasPrefix(line, "builder ") {
				return errors.New("commands stand in a block of console")
			}
		case begins:
			b.Commands = append(b.Commands, Command{Line: b.Line + 1 + i, Text: command})
		case last < 0:
			return errors.New("a console begins with a command")
		case len(b.Commands[last].Shown) == 0 && strings.HasSuffix(b.Commands[last].Text, `\`):
			b.Commands[last].Text += "\n" + line
		default:
			b.Commands[last].Shown = append(b.Commands[last].Shown, line)
		}
	}
	hidden := func(c Command) bool { return b.Cut && slices.Equal(c.Shown, []string{"..."}) }
	switch dotted := slices.Contains(b.Lines, "..."); {
	case slices.ContainsFunc(b.Commands, hidden):
		return errors.New("all that a command prints is cut")
	case b.Lang == "console" && len(b.Commands) == 0:
		return errors.New("the console is empty")
	case b.Cut && !dotted:
		return errors.New("nothing is cut: no line is three dots")
	case b.Lang != "console" && (b.Cut || b.Exit != 0 || b.Varies != nil):
		return errors.New("only a console can have this mark")
	case b.Lang != "console" && b.Lang != "text" && b.Kind == Text:
		return errors.New("say which file this is: <!-- file: PATH -->, or <!-- write: PATH -->")
	}
	return nil
}
