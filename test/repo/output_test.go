package repo_test

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
)

// mayPrint lists the files that may bypass the output guard: its implementation, cursor
// movement and commands for a server, handing the terminal to a shell, and the answer of a
// child process to its parent.
var mayPrint = []string{"cmd/builder/main.go", "cmd/builder/shell.go", "internal/files/elf/child.go", "internal/view/progress/format.go", "internal/view/term/guard.go"}

var unguarded = regexp.MustCompile(`\bos\.Std(?:out|err)\b|\bterm\.Raw\(|\bfmt\.Print(?:f|ln)?\(`)

// All other output passes through term.Guard.
func TestWhatIsPrintedIsGuarded(t *testing.T) {
	atRoot(t)
	for _, dir := range []string{"cmd", "internal", "pipelines"} {
		err := fs.WalkDir(os.DirFS("."), dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
				strings.Contains(name, "test/") || strings.Contains(name, "testdata/") || slices.Contains(mayPrint, name) {
				return err
			}
			text, err := os.ReadFile(name)
			for i, line := range strings.Split(string(text), "\n") {
				check.That(t, !unguarded.MatchString(line) || strings.HasPrefix(strings.TrimSpace(line), "//"),
					"%s:%d prints around term.Guard: %s", name, i+1, strings.TrimSpace(line))
			}
			return err
		})
		check.That(t, err == nil, "%v", err)
	}
}
