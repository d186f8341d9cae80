package term

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"

	"builder/internal/base/diag"
)

// A Guard filters all output to stdout and stderr. It removes control characters,
// commands for CI servers, and credentials, whatever code printed them. It keeps the
// colours of this package. It does not replace [Clean], which also keeps untrusted text
// on its own lines.
type Guard struct {
	w io.Writer

	mu   sync.Mutex
	rest []byte // the last line, which has no end yet
	err  error  // the first one of writing
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

// Write implements [io.Writer]. It passes on whole lines, because two writes can hide a
// command or an escape sequence that one of them alone does not show.
func (g *Guard) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rest = append(g.rest, p...)
	end := bytes.LastIndexByte(g.rest, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	lines := string(g.rest[:end])
	g.rest = bytes.Clone(g.rest[end:])
	return len(p), g.pass(lines)
}

// Flush writes a last line without a line end. It returns the first error of all writes,
// for example on a full disk: a truncated result is a failure.
func (g *Guard) Flush() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.pass(string(g.rest)) // g.err holds the error
	g.rest = nil
	return g.err
}

func (g *Guard) pass(text string) error {
	if text == "" {
		return nil
	}
	var b strings.Builder
	for line := range strings.Lines(newlines.Replace(diag.Redact(strings.ToValidUTF8(text, "\uFFFD")))) {
		b.WriteString(Inert(visible(line)))
	}
	_, err := io.WriteString(g.w, b.String())
	if g.err == nil {
		g.err = err
	}
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

// commands matches the commands executed by CI servers anywhere in a line: ##[command]
// of GitHub Actions, ##vso[command] and ##teamcity[command] of others.
var commands = regexp.MustCompile(`##(\w{0,16})\[`)

// Inert changes a line of untrusted text so that a CI server executes no command in it.
// GitHub Actions executes ::command:: at the beginning of a line, also after blanks,
// and ##[command] anywhere.
func Inert(line string) string {
	line = commands.ReplaceAllString(line, "# #$1[")
	if strings.HasPrefix(strings.TrimSpace(shown(line)), "::") {
		line = "| " + line
	}
	return line
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
