package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"builder/internal/docscript"
	"builder/internal/markdown"
)

// callsBuilder finds commands of builder, behind variables of the shell.
var callsBuilder = regexp.MustCompile(`^(\w+=\S+ )*builder `)

// understood demands of the commands that are not run here that builder understands
// them: verb, flags and their values. They find what the page has made.
func understood(t *testing.T, host docscript.Host, path string) {
	t.Helper()
	bin := t.TempDir() // in which builder reads its arguments and does nothing
	script := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\"\n", filepath.Join(underTest(), "parse"))
	if err := os.WriteFile(filepath.Join(bin, "builder"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	host.Env = readerEnv(host.Dir, bin)
	for _, b := range blocks(t, path) {
		if b.Kind != docscript.Elsewhere && b.Kind != docscript.E2E {
			continue
		}
		for _, c := range b.Commands {
			if !callsBuilder.MatchString(c.Text) {
				continue
			}
			if printed, code, err := host.Do(t.Context(), c.Text); code != 0 || err != nil {
				t.Errorf("%s:%d: %s: exit code %d, %v\n%s", path, c.Line, c.Text, code, err, printed)
			}
		}
	}
}

// A command that builder would refuse is not understood.
func TestUnderstood(t *testing.T) {
	t.Setenv("BUILDER_RECIPES", "")
	for command, want := range map[string]int{
		"builder run horovod --rocm 5.7":             0,
		"builder gate out/x --gpus all --attach":     0,
		"builder run horovod --rokm 5.7":             2,
		"builder run horovd":                         2,
		"builder engine upp":                         2,
		"builder run horovod --jobs many":            2,
		"builder verify out/x --rebuild --no-such x": 2,
	} {
		if got := parseArgs(strings.Fields(command), io.Discard, io.Discard); got != want {
			t.Errorf("%s: %d, want %d", command, got, want)
		}
	}
}

// parseOnly is builder without its deeds.
func parseOnly() { os.Exit(parseArgs(os.Args, os.Stdout, os.Stderr)) }

// parseArgs reads the arguments of a command as the program does, up to the point
// where it would begin to work.
func parseArgs(args []string, stdout, stderr io.Writer) int {
	args = append([]string{"builder"}, args[1:]...)
	app := newApp(args, configuration{}, stdout, stderr)
	idle(app.Commands)
	if err := app.Run(flagsFirst(args, app.Commands)); err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	return 0
}

// idle takes what commands do away from them, but from those that only hold others.
func idle(commands []*cli.Command) {
	for _, c := range commands {
		if len(c.Subcommands) == 0 {
			c.Action = func(*cli.Context) error { return nil }
		}
		idle(c.Subcommands)
	}
}

// placeholders stand for values in the text of pages.
var placeholders = strings.NewReplacer("[RECIPE]", "horovod", "RECIPE", "horovod", "PROFILE", "nccl", "CELLS", "horovod", " N", " 1", "[axes]", "", " … ", " horovod ", "…", "")

// What stands in the text as a command is one too. A verb alone may lack its recipe or profile.
func TestCommandsInTextParse(t *testing.T) {
	t.Setenv("BUILDER_RECIPES", "")
	all := pages(t)
	var texts []markdown.Page
	for _, path := range append(all, filepath.Join(repositoryRoot, "CONTRIBUTING.md")) {
		page, err := markdown.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, page)
	}
	t.Chdir(reader(t).Dir)
	found := 0
	for _, page := range texts {
		for _, span := range page.Code {
			words := strings.Fields(placeholders.Replace(span.Text))
			if len(words) < 2 || words[0] != "builder" || strings.ContainsAny(span.Text, `'"|$`) {
				continue
			}
			found++
			var said strings.Builder
			if parseArgs(words, &said, &said) != 0 && parseArgs(append(words, "nccl"), io.Discard, io.Discard) != 0 {
				t.Errorf("%s:%d: %s: %s", page.Path, span.Line, span.Text, said.String())
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d commands were found in the text", found)
	}
}
