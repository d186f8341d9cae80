package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/internal/base/shell"
	"builder/test/kit/check"
)

// shellsUnderTest lists the shells, each with a function that returns a script. The script
// prints the completions of a command line, one word per line.
var shellsUnderTest = []struct {
	name string
	args []string
	ask  func(words []string) string
}{
	{"bash", []string{"--noprofile", "--norc", "-c"}, askBash},
	{"zsh", []string{"-f", "-c"}, askZsh},
	{"fish", []string{"--no-config", "-c"}, askFish},
}

// askBash sets the variables of readline.
func askBash(words []string) string {
	return fmt.Sprintf(`eval "$(builder config completion bash)"
COMP_WORDS=(%s)
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_builder
printf '%%s\n' "${COMPREPLY[@]}"`, quoted(words))
}

// askZsh replaces zsh's completion functions by printing functions, which do not filter.
func askZsh(words []string) string {
	return fmt.Sprintf(`compdef() { : }
_files() { : }
compadd() { shift; print -rl -- ${(M)@:#$words[CURRENT]*} }
eval "$(builder config completion zsh)"
words=(%s)
CURRENT=${#words}
_builder`, quoted(words))
}

func askFish(words []string) string {
	return fmt.Sprintf(`builder config completion fish | source
function __fish_complete_path; end
complete -C %s`, shell.Quote(strings.Join(words, " ")))
}

// quoted returns words for a shell.
func quoted(words []string) string {
	var all []string
	for _, word := range words {
		all = append(all, shell.Quote(word))
	}
	return strings.Join(all, " ")
}

// TestShells loads the scripts in real shells and completes command lines.
func TestShells(t *testing.T) {
	for _, shell := range shellsUnderTest {
		t.Run(shell.name, func(t *testing.T) {
			program, err := exec.LookPath(shell.name)
			if err != nil {
				t.Skipf("%s is not installed", shell.name)
			}
			bare(t)
			home := filepath.Join(t.TempDir(), "home")
			t.Setenv("BUILDER_HOME", home)
			t.Setenv("HOME", t.TempDir())
			t.Chdir(t.TempDir())
			for _, c := range completions {
				cmd := exec.Command(program, append(shell.args, shell.ask(append([]string{"builder"}, c.words...)))...)
				var complaint strings.Builder
				cmd.Stderr = &complaint
				said, err := cmd.Output()
				check.That(t, complaint.Len() == 0, "%q: %v, stderr %s", c.words, err, complaint.String())
				got := offered(string(said))
				check.That(t, !c.exact || slices.Equal(got, c.want), "%q: got %q, want %q", c.words, got, c.want)
				for _, word := range c.want {
					check.That(t, slices.Contains(got, word), "%q: got %q, and no %q", c.words, got, word)
				}
			}
			_, err = os.Stat(home)
			check.That(t, err != nil, "completion has made the state directory")
			entries, err := os.ReadDir(".")
			check.That(t, err == nil && len(entries) == 0, "completion has written: %v, %v", entries, err)
		})
	}
}

// completions are command lines; the last word is completed.
var completions = []struct {
	words []string
	want  []string
	exact bool
}{
	{[]string{"pl"}, []string{"plan"}, true},
	{[]string{"store", ""}, []string{"export", "gc", "import", "verify"}, true},
	{[]string{"plan", "horovod", "--ro"}, []string{"--rocm"}, true},
	{[]string{"plan", "horovod", "--rocm", "5"}, []string{"5.7"}, true},
	{[]string{"patch", "show", "nccl"}, []string{"nccl", "nccl-tests"}, true},
	{[]string{"run", "horovod", "--tests", "q"}, []string{"quick"}, true},
	{[]string{"config", "completion", "f"}, []string{"fish"}, true},
	{[]string{"verify", "--trust", "x"}, nil, true},
	{[]string{"rnu", ""}, nil, true},
}

// offered returns the words without descriptions, sorted, because shells may reorder
// them.
func offered(said string) []string {
	var words []string
	for line := range strings.Lines(said) {
		word, _, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		if word != "" && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return words
}
