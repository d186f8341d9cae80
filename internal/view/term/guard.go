package term

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"builder/internal/base/diag"
)

// A Guard filters all output to stdout and stderr. It removes control characters,
// commands for CI servers, and credentials, whatever code printed them. It keeps the
// colours of this package. It does not replace [Clean], which also keeps untrusted text
// on its own lines.
type Guard struct {
	w io.Writer

	mu   sync.Mutex
	rest []byte // the beginning of a rune, an escape sequence or a line end
	line string // the end of the current line
}

// NewGuard returns a guard for w.
func NewGuard(w io.Writer) *Guard { return &Guard{w: w} }

// Raw returns the writer behind the guard. Use it to move the cursor, to send commands
// to a CI server, or to give the terminal to a program. The caller must clean all text
// itself.
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

// Flush writes a remaining incomplete sequence.
func (g *Guard) Flush() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	rest := string(g.rest)
	g.rest = nil
	return g.pass(rest)
}

// pass writes text that ends with a complete rune and a complete escape sequence.
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

// ownColours matches the colours of this package.
var ownColours = regexp.MustCompile(`^\x1b\[(?:1|2|31|32|35|1;31)?m$`)

// visible is [Clean] for a line that may hold this package's colours and tabs.
func visible(line string) string {
	if !mayEscape(line) {
		return tabbed(line)
	}
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

// inert is [Inert] for the next part of the current line.
func (g *Guard) inert(part string) string {
	var safe string
	if shown(g.line) == "" {
		safe = Inert(part)
	} else {
		safe = disarmed(part, "# #$1[")
	}
	if whole := g.line + safe; shown(Inert(whole)) != shown(whole) {
		safe = " " + safe // the command started in an earlier part
	}
	g.line = strings.TrimLeftFunc(shown(g.line+safe), unicode.IsSpace)
	if len(g.line) > 2*maxCommand {
		g.line = strings.ToValidUTF8(g.line[len(g.line)-maxCommand:], "")
		g.line = "|" + g.line // a command cannot start in the middle of the line
	}
	return safe
}

// shown returns a text without escape sequences.
func shown(text string) string {
	if !mayEscape(text) {
		return text
	}
	return escapes.ReplaceAllString(text, "")
}

// mayEscape tells whether a text has a character that starts an escape sequence. Output
// of megabytes has none, and a search for one character is much cheaper than [escapes].
func mayEscape(text string) bool {
	return strings.Contains(text, "\x1b") || strings.Contains(text, "\u009b")
}

// maxCommand bounds the name of a command.
const maxCommand = 32

// commands matches the commands executed by CI servers anywhere in a line: ##[command]
// of GitHub Actions, ##vso[command] and ##teamcity[command] of others.
var commands = regexp.MustCompile(`##(\w{0,16})\[`)

// disarmed replaces the commands in a text.
func disarmed(text, by string) string {
	if !strings.Contains(text, "##") {
		return text
	}
	return commands.ReplaceAllString(text, by)
}

// Inert changes a line of untrusted text so that a CI server executes no command in it.
// GitHub Actions executes ::command:: at the beginning of a line, also after blanks,
// and ##[command] anywhere.
func Inert(line string) string {
	line = disarmed(line, "# #$1[")
	if strings.HasPrefix(strings.TrimSpace(shown(line)), "::") {
		line = "| " + line
	}
	return line
}

// maxRest bounds an incomplete escape sequence kept back.
const maxRest = 4 << 10

// unfinished returns the number of bytes at the end of data that may begin a rune, an
// escape sequence, or a line end of two bytes.
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

// Fd returns the descriptor of the file behind the guard, or an invalid one.
func (g *Guard) Fd() uintptr {
	if f, ok := g.w.(*os.File); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// Read returns io.EOF. Some libraries accept only readers as terminals.
func (g *Guard) Read([]byte) (int, error) { return 0, io.EOF }

// Close does nothing. The owner of the inner writer closes it.
func (g *Guard) Close() error { return nil }
