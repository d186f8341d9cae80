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
	"builder/test/kit/must"
)

// shellsUnderTest lists the shells, each with a function that returns a script. The script
// prints the completions of a command line, one word per line. Files are printed as the
// word FILES.
var shellsUnderTest = []struct {
	name string
	args []string
	ask  func(words []string) string
}{
	{"bash", []string{"--noprofile", "--norc", "-c"}, askBash},
	{"zsh", []string{"-f", "-c"}, askZsh},
	{"fish", []string{"--no-config", "-c"}, askFish},
}

// askBash sets the variables of readline, which splits words at = and : and replaces
// the last part. The script prepends the other parts again.
func askBash(words []string) string {
	var parts []string
	for _, word := range words {
		if word == "" {
			parts = append(parts, "''")
			continue
		}
		for word != "" {
			i := strings.IndexAny(word, "=:")
			switch i {
			case -1:
				parts, word = append(parts, shell.Quote(word)), ""
			case 0:
				parts, word = append(parts, shell.Quote(word[:1])), word[1:]
			default:
				parts, word = append(parts, shell.Quote(word[:i])), word[i:]
			}
		}
	}
	last := words[len(words)-1]
	kept := last[:strings.LastIndexAny(last, "=:")+1]
	line := strings.Join(words, " ")
	return fmt.Sprintf(`eval "$(builder config completion bash)"
compopt() { [[ $2 == filenames ]] && echo FILES; }
COMP_LINE=%s COMP_POINT=%d COMP_WORDS=(%s)
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_builder
for word in "${COMPREPLY[@]}"; do echo %s"$word"; done`, shell.Quote(line), len(line), strings.Join(parts, " "), shell.Quote(kept))
}

// askZsh replaces zsh's completion functions by printing functions.
func askZsh(words []string) string {
	var list []string
	for _, word := range words {
		list = append(list, shell.Quote(word))
	}
	return fmt.Sprintf(`compdef() { : }
_files() { print FILES }
compadd() { while [[ $1 != -- ]]; do shift; done; shift; print -rl -- "$@" }
eval "$(builder config completion zsh)"
words=(%s)
CURRENT=${#words}
_builder`, strings.Join(list, " "))
}

func askFish(words []string) string {
	return fmt.Sprintf(`builder config completion fish | source
function __fish_complete_path; echo $argv[1]FILES; end
function __fish_complete_directories; echo $argv[1]FILES; end
complete -C %s | string replace -r '^.*FILES$' FILES`, shell.Quote(strings.Join(words, " ")))
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
			last := `{"schema": 1, "cells": [{"id": "tiny-1.0+x", "status": "pass"}]}`
			must.Succeed(t, os.MkdirAll("out/.lock", 0o755), os.WriteFile("out/run.json", []byte(last), 0o644))
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
			if entries, err := os.ReadDir("."); err != nil || len(entries) != 1 {
				t.Errorf("completion has written: %v, %v", entries, err)
			}
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
	{[]string{"store", ""}, []string{"export", "gc", "import", "list", "verify"}, true},
	{[]string{"plan", "horovod", ""}, []string{"--rocm", "--locked"}, false},
	{[]string{"plan", "horovod", "--rocm", "5"}, []string{"5.7"}, true},
	{[]string{"plan", "horovod", "--rocm=5"}, []string{"--rocm=5.7"}, true},
	{[]string{"plan", "horovod", "--rocm=5.7,6.1,n"}, []string{"--rocm=5.7,6.1,none"}, true},
	{[]string{"run", "horovod", "--arch", "gfx90a,gfx9"}, []string{"gfx90a,gfx942"}, true},
	{[]string{"run", "horovod", "--engine", "unix:"}, []string{"unix://"}, true},
	{[]string{"patch", "show", "nccl"}, []string{"nccl", "nccl-tests"}, true},
	{[]string{"run", "horovod", "--tests", "q"}, []string{"quick"}, true},
	{[]string{"publish", "yank", "ti"}, []string{"tiny-1.0+x"}, true},
	{[]string{"gate", "out/ti"}, []string{"FILES", "out/tiny-1.0+x"}, false},
	{[]string{"verify", "--trust", "x"}, []string{"FILES"}, true},
	{[]string{"run", "horovod", "--out", "x"}, []string{"FILES"}, true},
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
