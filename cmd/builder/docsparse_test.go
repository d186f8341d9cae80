package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/docscript"
	"builder/test/kit/markdown"
	"builder/test/kit/must"
)

// callsBuilder matches commands of builder, with optional shell variables before them.
var callsBuilder = regexp.MustCompile(`^(\w+=\S+ )*builder `)

// understood checks that builder can parse the commands that are not run here: verb,
// flags and values. Files made by earlier commands of the page exist.
func understood(t *testing.T, host docscript.Host, path string) {
	t.Helper()
	bin := t.TempDir() // its builder only parses its arguments
	script := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\"\n", filepath.Join(underTest(), "parse"))
	must.Succeed(t, os.WriteFile(filepath.Join(bin, "builder"), []byte(script), 0o755))
	host.Env = readerEnv(host.Dir, bin)
	for _, b := range blocks(t, path) {
		if b.Kind != docscript.Elsewhere && b.Kind != docscript.E2E {
			continue
		}
		for _, c := range b.Commands {
			if !callsBuilder.MatchString(c.Text) {
				continue
			}
			printed, code, err := host.Do(t.Context(), c.Text)
			check.That(t, code == 0 && err == nil, "%s:%d: %s: exit code %d, %v\n%s", path, c.Line, c.Text, code, err, printed)
		}
	}
}

// A command rejected by builder does not parse.
func TestUnderstood(t *testing.T) {
	bare(t)
	for command, want := range map[string]bool{
		"builder run horovod --rocm 5.7":         true,
		"builder gate out/x --gpus all --attach": true,
		"builder run horovod --rokm 5.7":         false,
		"builder run horovod --rocm 99":          false,
		"builder run horovod x":                  false,
		"builder run horovd":                     false,
		"builder rnu horovod":                    false,
		"builder run horovod --jobs many":        false,
		"builder gate x --only frob":             false,
		"builder store gc --keep":                false,
	} {
		check.Same(t, command, want, parse(strings.Fields(command)) == nil)
	}
}

// parseOnly runs builder without actions: it parses its arguments and exits before any
// work.
func parseOnly() {
	if err := parse(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(0)
}

// placeholders replaces placeholders in pages by values.
var placeholders = strings.NewReplacer("VERB", "plan", "SHELL", "bash", "[RECIPE]", "horovod", "RECIPE", "horovod", "PROFILE", "nccl", "CELLS", "horovod", "PLACE", "https://wheels.example.org", " N", " 1", "[axes]", "", " … ", " horovod ", "…", "")

// Commands in the text must parse too. A verb alone must exist. A verb with flags may
// lack its recipe or profile.
func TestCommandsInTextParse(t *testing.T) {
	verbs, all := tool(t), pages(t)
	var texts []markdown.Page
	for _, path := range append(all, filepath.Join(repositoryRoot, "CONTRIBUTING.md")) {
		page := must.Get(markdown.Read(path))(t)
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
			named := slices.DeleteFunc(slices.Clone(words[1:]), func(word string) bool { return word == "--help" || word == "--version" })
			if _, isVerb := verbs.find(named); isVerb {
				continue
			}
			err := parse(words)
			check.That(t, err == nil || parse(append(words, "nccl")) == nil, "%s:%d: %s: %v", page.Path, span.Line, span.Text, err)
		}
	}
	check.That(t, found >= 40, "only %d commands were found in the text", found)
}
