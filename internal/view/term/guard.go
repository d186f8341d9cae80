package term

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"builder/internal/base/diag"
)

// A Guard is the last thing before stdout and stderr: whatever is printed, from
// wherever, leaves it without control characters, without commands to a server that
// reads the log, and without credentials. The colours of this package stay. It does
// not replace [Clean], which keeps a foreign text on the lines that it was given.
type Guard struct {
	w io.Writer

	mu   sync.Mutex
	rest []byte // the beginning of a rune, of an escape sequence or of a line end
	line string // the end of the line that is being written
}

// NewGuard returns a guard before w.
func NewGuard(w io.Writer) *Guard { return &Guard{w: w} }

// Raw is what stands behind the guard, for who moves the cursor, gives commands to a
// server, or hands the terminal to a program; every text in it is clean already.
func Raw(w io.Writer) io.Writer {
	if g, ok := w.(*Guard); ok {
		return g.w
	}
	return w
}

// Write implements [io.Writer].
func (g *Guard) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	data := append(g.rest, p...)
	cut := len(data) - unfinished(data)
	g.rest = bytes.Clone(data[cut:])
	return len(p), g.pass(string(data[:cut]))
}

// Flush writes what waits for its other half.
func (g *Guard) Flush() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	rest := string(g.rest)
	g.rest = nil
	return g.pass(rest)
}

// pass writes whole runes and whole escape sequences.
func (g *Guard) pass(text string) error {
	if text == "" {
		return nil
	}
	var b strings.Builder
	for i, line := range strings.Split(newlines.Replace(diag.Redact(strings.ToValidUTF8(text, "\uFFFD"))), "\n") {
		if i > 0 {
			b.WriteByte('\n')
			g.line = ""
		}
		b.WriteString(g.inert(visible(line)))
	}
	_, err := io.WriteString(g.w, b.String())
	return err
}

// ownColours are those of this package.
var ownColours = regexp.MustCompile(`^\x1b\[(?:1|2|31|32|35|1;31)?m$`)

// visible is [Clean] for a line that may have our own colours and tabs.
func visible(line string) string {
	var b strings.Builder
	from := 0
	for _, at := range escapes.FindAllStringIndex(line, -1) {
		b.WriteString(tabbed(line[from:at[0]]))
		if sequence := line[at[0]:at[1]]; ownColours.MatchString(sequence) {
			b.WriteString(sequence)
		}
		from = at[1]
	}
	return b.String() + tabbed(line[from:])
}

func tabbed(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return printable(r)
	}, text)
}

// inert is [Inert] for the next part of the line that is being written.
func (g *Guard) inert(part string) string {
	var safe string
	if shown(g.line) == "" {
		safe = Inert(part)
	} else {
		safe = commands.ReplaceAllString(part, "# #$1[")
	}
	if whole := g.line + safe; shown(Inert(whole)) != shown(whole) {
		safe = " " + safe // the command began in an earlier part
	}
	g.line = strings.TrimLeft(shown(g.line+safe), " \t")
	if len(g.line) > 2*maxCommand {
		g.line = strings.ToValidUTF8(g.line[len(g.line)-maxCommand:], "")
		g.line = "|" + g.line // it does not begin here
	}
	return safe
}

// shown is a text without our own colours.
func shown(text string) string { return escapes.ReplaceAllString(text, "") }

// maxCommand bounds the word of a command.
const maxCommand = 32

// commands are those that a server obeys anywhere in a line: ##[command] of GitHub
// Actions, ##vso[command] and ##teamcity[command] of others.
var commands = regexp.MustCompile(`##(\w{0,16})\[`)

// Inert makes a line of foreign text no command to a server that reads the log.
// That of GitHub Actions obeys ::command:: at the beginning of a line, behind blanks
// too, and ##[command] anywhere.
func Inert(line string) string {
	line = commands.ReplaceAllString(line, "# #$1[")
	if strings.HasPrefix(strings.TrimSpace(shown(line)), "::") {
		line = "| " + line
	}
	return line
}

// maxRest bounds an escape sequence whose end is waited for.
const maxRest = 4 << 10

// unfinished is how many bytes at the end of data may be the beginning of a rune,
// of an escape sequence, or of a line end of two bytes.
func unfinished(data []byte) int {
	if i := bytes.LastIndexByte(data, 0x1b); i >= 0 && len(data)-i < maxRest {
		tail := data[i:]
		if at := escapes.FindIndex(tail); (at == nil || at[0] > 0) && !bytes.ContainsAny(tail, "\n\r") {
			return len(tail)
		}
	}
	if len(data) > 0 && data[len(data)-1] == '\r' {
		return 1
	}
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if tail := data[len(data)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return n
			}
			break
		}
	}
	return 0
}

// Fd is that of the terminal behind the guard, or none.
func (g *Guard) Fd() uintptr {
	if f, ok := g.w.(*os.File); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// Read implements what makes a writer a terminal to others; there is nothing.
func (g *Guard) Read([]byte) (int, error) { return 0, io.EOF }

// Close does nothing: who opened what is behind the guard closes it.
func (g *Guard) Close() error { return nil }
